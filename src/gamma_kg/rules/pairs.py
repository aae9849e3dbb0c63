"""Relations that never hold between the same two things: a part of a kidney is no kind of kidney.

The model sees that two things belong together, and proposes a second relation for what the first one says already.
Where the two were seen together the other way round, that this way is none of them may be chance: of four pairs that
cause what they are a sort of, all four may point that way by luck. But where a relation's pairs next to never have any
second relation this way round, one more that never comes needs no such proof. S relation ids, both ways round.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gamma_kg.graph.inverse import both_ways, inverse_of, num_types
from gamma_kg.rules.bounds import at_most

IntArray = NDArray[np.int64]
# Not one pair may have both; the bounds are for what may still come, of this relation's facts and of the other's.
MAX_BESIDE = 0.005
MAX_BESIDE_OTHER = 0.01
# Were both ways round as likely, so many pairs would all be the other way round by such a chance at most: five.
MAX_CHANCE = 0.05


class PairExclusions:
    """Counts how often any two relations link the same pair."""

    def __init__(self, triples: IntArray, num_entities: int, num_relations: int) -> None:
        self._num_relations = num_relations
        start, relation, end = both_ways(triples, num_relations)
        _, pair = np.unique(start * np.int64(max(num_entities, 1)) + end, return_inverse=True)
        size = (int(pair.max()) + 1 if len(pair) else 0, num_types(num_relations))
        links = sparse.csr_array((np.ones(len(pair)), (pair, relation)), shape=size)
        links.sum_duplicates()
        links.data[:] = 1
        self._both_SS = (links.T @ links).tocsc()
        self._facts: IntArray = self._both_SS.diagonal().astype(np.int64)
        self.excluding = lru_cache(maxsize=None)(self._excluding)

    def _excluding(self, relation: int) -> NDArray[np.bool_]:
        """Relation ids that, where they link two things, rule this one out between them, (S,)."""
        itself = [relation, inverse_of(relation, self._num_relations)]
        both, turned = (self._seen_with(one) for one in itself)
        found = (both == 0) & ((turned == 0) | (0.5**turned <= MAX_CHANCE) | self._is_alone(relation, itself))
        found &= (at_most(0, self._facts[relation]) <= MAX_BESIDE) & (at_most(0, self._facts) <= MAX_BESIDE_OTHER)
        # Whether a relation holds both ways is a rule of its own.
        found[itself] = False
        return np.asarray(found, dtype=bool)

    def _is_alone(self, relation: int, itself: list[int]) -> NDArray[np.bool_]:
        """Whether next to no pair of a relation has another one that runs the way of each relation id, (S,)."""
        others = self._seen_with(relation)
        others[itself] = 0
        runs_back = np.arange(len(others)) >= self._num_relations
        of_a_way = np.where(runs_back, others[runs_back].sum(), others[~runs_back].sum())
        facts = self._facts[relation]
        return np.asarray(at_most(np.minimum(of_a_way, facts), facts) <= MAX_BESIDE)

    def _seen_with(self, relation: int) -> IntArray:
        """How many pairs each relation id shares with this one, (S,)."""
        return np.asarray(self._both_SS[:, [relation]].toarray().ravel(), dtype=np.int64)

    def counts(self, relation: int, other: int) -> tuple[int, int]:
        """Pairs that both link, and those that the other one does."""
        return int(self._both_SS[other, relation]), int(self._facts[other])
