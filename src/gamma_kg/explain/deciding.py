"""Which facts decide: every fact at the two ends and on the paths is taken out, one at a time, then pairs of them.

Gradients alone miss the fact that everything hangs on: near certainty the score is flat, and only removal shows it. A
fact decides when the answer's share of the probability falls to half or less without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gamma_kg.explain.asked import Asked, Standing
from gamma_kg.explain.ground import Triple

DECIDES = 0.5
MOST_TESTED = 160  # a hub's facts beyond this are left to their gradients
MOST_PAIRED = 10

Cause = Literal["one", "two", "many", "none"]


class Tested(NamedTuple):
    """Facts that were taken out together, and how the answer stands without them."""

    facts: tuple[Triple, ...]
    without: Standing


class Decision(NamedTuple):
    """What the answer rests on. `cause`: one fact, two together, many that each add a little, or nothing tested."""

    cause: Cause
    single: list[Tested]  # most important first
    pairs: list[Tested]  # those that decide, only where no single fact does
    num_tested: int


def deciding_facts(asked: Asked, paths: Iterable[Iterable[Triple]], gradient_TE: NDArray[np.float64]) -> Decision:
    """Take out every candidate fact alone, and pairs of the weightiest where none of them decides alone."""
    triples = _candidates(asked, paths, gradient_TE)
    single = _tested(asked, [(triple,) for triple in triples])
    # Those that decide first: where all candidates fall together, the score falls and the answer stands. Then the one
    # fact that is all else known of the head: whatever the answer is, it comes over that fact.
    only = _only_fact(asked)
    single.sort(key=lambda tested: (not _decides(asked, tested), tested.facts[0] != only, tested.without.score))
    if any(_decides(asked, tested) for tested in single):
        return Decision("one", single, [], len(single))
    strongest = [tested.facts[0] for tested in single[:MOST_PAIRED]]
    pairs = _tested(asked, list(combinations(strongest, 2)))
    pairs = sorted((pair for pair in pairs if _decides(asked, pair)), key=lambda tested: tested.without.score)
    moved = any(tested.without.score < asked.standing.score - 1e-4 for tested in single)
    return Decision("two" if pairs else "many" if moved else "none", single, pairs, len(single))


def _tested(asked: Asked, removals: Sequence[tuple[Triple, ...]]) -> list[Tested]:
    return list(map(Tested, removals, asked.without_each(removals)))


def _decides(asked: Asked, tested: Tested) -> bool:
    return tested.without.share <= DECIDES * asked.standing.share


def _only_fact(asked: Asked) -> Triple | None:
    """The one fact that the head has beside the fact in question; None if there are several or none."""
    fact_E3 = asked.facts()
    of_head = np.unique(fact_E3[(fact_E3[:, 0] == asked.fact[0]) | (fact_E3[:, 2] == asked.fact[0])], axis=0)
    return tuple(of_head[0].tolist()) if len(of_head) == 1 else None


def _candidates(asked: Asked, paths: Iterable[Iterable[Triple]], gradient_TE: NDArray[np.float64]) -> list[Triple]:
    """Facts of the paths, then of the two ends and of the steepest gradients, the steeper first."""
    fact_E3 = asked.facts()
    steepness = np.abs(gradient_TE.sum(0))
    head, _, tail = asked.fact
    at_ends = np.isin(fact_E3[:, 0], (head, tail)) | np.isin(fact_E3[:, 2], (head, tail))
    ends = np.flatnonzero(at_ends)
    ends = ends[np.argsort(-steepness[ends], kind="stable")]
    steepest = np.argsort(-steepness, kind="stable")[: MOST_TESTED // 4]
    ordered = [triple for path in paths for triple in path]
    ordered += [tuple(triple) for triple in fact_E3[np.concatenate((ends, steepest))].tolist()]
    return list(dict.fromkeys(ordered))[:MOST_TESTED]
