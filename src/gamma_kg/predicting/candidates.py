"""The best candidates of a query, still numbers: their scores, their probabilities, and then their names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.inverse import direct_of
from gamma_kg.nn.answers import Answers
from gamma_kg.predicting.calibration import Calibration
from gamma_kg.predicting.odds import FactOdds
from gamma_kg.predicting.prediction import Prediction, Query
from gamma_kg.predicting.score_batch import Ranked


@dataclass(frozen=True)
class Candidate:
    """One entity or relation, by its id, that may take the open place of a query."""

    id: int
    score: float
    probability: float
    branch_weights: dict[str, float]
    local: int | None
    is_sampled: bool

    def named(self, query: Query, name: str, known: bool, why_not: str | None = None) -> Prediction:
        """The prediction that puts `name` into the open place of the query; a known fact needs no defence."""
        head, relation, tail = query
        return Prediction(
            name=name,
            score=self.score,
            probability=self.probability,
            known=known,
            branch_weights=self.branch_weights,
            head=name if head is None else head,
            relation=name if relation is None else relation,
            tail=name if tail is None else tail,
            why_not=None if known else why_not,
            local=self.local,
            is_sampled=self.is_sampled,
        )


def best_candidates(
    ranked: Ranked, answers: Answers, branch_names: Sequence[str], without: Tensor, held: Tensor | None = None
) -> list[Candidate]:
    """The best, less those in `without`; their probability is their share of exp(score) among all that are left.

    What the graph has `held` all along takes no share from the others, so that a fact has one probability, shown
    beside known ones or alone; a known one has the share that it would have if it alone were not known.
    """
    # In plain Python: for so few numbers the calls of a library would be most of the work.
    total, is_held = ranked.log_total, frozenset[int]()
    if held is not None and len(held):
        total, is_held = answers.log_total(torch.cat((without, held))), frozenset(held.tolist())
    even = [1 / max(len(branch_names), 1)] * len(branch_names)
    weights = [even] * len(ranked.entity) if ranked.weight is None else ranked.weight
    local, is_sampled = answers.local, answers.is_sampled
    found = []
    for i, score, own in zip(ranked.entity, ranked.score, weights, strict=True):
        of = float(np.logaddexp(score, total)) if i in is_held else total
        by_branch = dict(zip(branch_names, own, strict=True))
        found.append(Candidate(i, score, math.exp(score - of), by_branch, local, is_sampled))
    return found if held is None else _likeliest_first(found)


def calibrated(
    calibration: Calibration,
    odds: FactOdds,
    asked: Sequence[tuple[int, int]],
    answers: Sequence[Answers],
    best: Sequence[Sequence[Candidate]],
) -> list[list[Candidate]]:
    """The best candidates of queries (source, relation) with the fitted probability of their facts, likeliest first.

    A fact is weighed from both its ends: one is the query itself, the other is asked for here, all at once.
    """
    facts = [(*query, candidate.id) for query, found in zip(asked, best, strict=True) for candidate in found]
    others = odds.other_ends(np.array(facts, dtype=np.int64).reshape(-1, 3))
    ranked = []
    for (source, relation), own, found in zip(asked, answers, best, strict=True):
        ids = [candidate.id for candidate in found]
        from_here = odds.end(source, relation, own).log_odds(torch.tensor(ids, dtype=torch.long))
        inverse, direct = odds.rules.inverse(relation), direct_of(relation, odds.rules.num_relations)
        from_there = [others[i, inverse].log_odds(torch.tensor([source]))[0] for i in ids]
        fitted = calibration.probability(direct, (from_here + np.array(from_there)) / 2)
        with_fitted = (replace(one, probability=p) for one, p in zip(found, fitted.tolist(), strict=True))
        ranked.append(_likeliest_first(with_fitted))
    return ranked


def _likeliest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda one: (-one.probability, -one.score))
