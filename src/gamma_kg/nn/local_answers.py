"""Answers from a neighbourhood, or from a wide and a near one, and a background.

Entities of the neighbourhoods have scores of their own: the mean of what the model says of them in either, where the
wide one counts twice; who is in one of them only has the background's score in place of the other's. All others have
those of the background, which is shared by all queries of the relation.

N entities, M of them with a score of their own, K branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.nn.answers import Answers

# How much the wide neighbourhood counts beside the near one (docs/local.md).
WIDE_SHARE = 2 / 3
# The best of a background are sorted once; a query looks through as many of them as it needs.
SORTED = 1 << 14


@dataclass(frozen=True, eq=False)
class Background:
    """Scores of entities for a relation without any source.

    `entity_M`, ascending, has them; it is None if all do. An entity that a sample has not met scores `rest`.
    """

    num_entities: int
    entity_M: Tensor | None
    score_M: Tensor
    weight_MK: Tensor | None
    rest: float = -torch.inf

    @property
    def is_sampled(self) -> bool:
        return self.entity_M is not None

    @property
    def num_bytes(self) -> int:
        kept = (self.entity_M, self.score_M, self.weight_MK)
        return sum(tensor.numel() * tensor.element_size() for tensor in kept if tensor is not None)

    def at(self, entity: Tensor) -> Tensor:
        if self.entity_M is None:
            return self.score_M[entity]
        place, is_met = self._places(entity)
        return torch.where(is_met, self.score_M[place], self.rest)

    def weights(self, entity: Tensor) -> Tensor | None:
        if self.weight_MK is None or self.entity_M is None:
            return None if self.weight_MK is None else self.weight_MK[entity]
        place, is_met = self._places(entity)
        return torch.where(is_met[:, None], self.weight_MK[place], 1 / self.weight_MK.shape[1])

    def best(self, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        """The best `count` of all entities but those in `without`, which is ascending."""
        end = count + 64
        while True:  # twice as far each time: rules may leave out thousands
            entity = self._top[:end]
            entity = entity[~_is_in(entity, without)]
            is_all = end >= len(self._top)
            if len(entity) >= count or is_all:
                break
            end *= 2
        if len(entity) < count and len(self._top) < len(self.score_M):  # nearly all of the best are out: look at all
            place, is_met = (without, slice(None)) if self.entity_M is None else self._places(without)
            score_M = self.score_M.index_fill(0, place[is_met], -torch.inf)
            place = score_M.topk(min(count, int(score_M.isfinite().sum()))).indices
            entity = place if self.entity_M is None else self.entity_M[place]
        entity = entity[:count]
        return entity, self.at(entity)

    def total(self, without: Tensor) -> tuple[float, float]:
        """Σ exp(score − top) over all entities but those in `without`, and the top."""
        highest, total = self._total
        return max(total - float((self.at(without).double() - highest).exp().sum()), 0.0), highest

    def above(self, score: float, without: Tensor) -> int:
        """How many of all entities but those in `without` score more."""
        found = len(self.score_M) - int(torch.searchsorted(self._ascending, torch.tensor([score]), right=True))
        if self.rest > score:
            found += self.num_entities - len(self.score_M)
        return found - int((self.at(without) > score).sum())

    def _places(self, entity: Tensor) -> tuple[Tensor, Tensor]:
        assert self.entity_M is not None
        place = torch.searchsorted(self.entity_M, entity).clamp(max=max(len(self.entity_M) - 1, 0))
        return place, self.entity_M[place] == entity

    @cached_property
    def _top(self) -> Tensor:
        """The best entities, best first; of equal ones the lower id."""
        count = min(SORTED, len(self.score_M))
        place = self.score_M.topk(count).indices.sort().values if count < len(self.score_M) else torch.arange(count)
        place = place[self.score_M[place].sort(descending=True, stable=True).indices]
        return place if self.entity_M is None else self.entity_M[place]

    @cached_property
    def _ascending(self) -> Tensor:
        return self.score_M.sort().values

    @cached_property
    def _total(self) -> tuple[float, float]:
        highest = float(self.score_M.max()) if len(self.score_M) else self.rest
        highest = max(highest, self.rest)
        unmet = self.num_entities - len(self.score_M)
        rest = unmet * float(torch.tensor(self.rest - highest, dtype=torch.double).exp()) if unmet else 0.0
        return highest, float((self.score_M.double() - highest).exp().sum()) + rest


class Seen(NamedTuple):
    """What the model says of the entities of one neighbourhood."""

    entity_M: Tensor  # in any order
    score_M: Tensor
    weight_MK: Tensor | None


class _Candidates(NamedTuple):
    """The candidates of a query: those inside of the neighbourhood, and those outside by what is not among them."""

    entity: Tensor
    score: Tensor
    not_outside: Tensor  # ascending


@dataclass(frozen=True, eq=False)
class LocalAnswers(Answers):
    """Scores from neighbourhoods; those of all other entities are the background's."""

    triples: int  # at most so many in the wide neighbourhood
    entity_M: Tensor  # in either neighbourhood, in any order
    score_M: Tensor
    weight_MK: Tensor | None
    background: Background

    @classmethod
    def of(cls, triples: int, wide: Seen, near: Seen | None, background: Background) -> LocalAnswers:
        """Of what is seen in the wide neighbourhood and, if there is one, in the near one."""
        if near is None:
            return cls(triples, *wide, background)
        ascending, order = wide.entity_M.sort()
        is_new = ~_is_in(near.entity_M, ascending)
        entity_M = torch.cat((wide.entity_M, near.entity_M[is_new]))
        place = torch.empty_like(near.entity_M)  # of the near one's entities
        place[is_new] = torch.arange(len(wide.entity_M), len(entity_M))
        place[~is_new] = order[torch.searchsorted(ascending, near.entity_M[~is_new])]
        base_M = background.at(entity_M)
        wide_M = torch.cat((wide.score_M, base_M[len(order) :]))
        near_M = base_M.index_copy(0, place, near.score_M)
        score_M = WIDE_SHARE * wide_M + (1 - WIDE_SHARE) * near_M
        if wide.weight_MK is None or near.weight_MK is None:
            return cls(triples, entity_M, score_M, None, background)
        # Branch weights are those of the wide one, where an entity is in it.
        return cls(triples, entity_M, score_M, torch.cat((wide.weight_MK, near.weight_MK[is_new])), background)

    @property
    def local(self) -> int:
        return self.triples

    @property
    def num_entities(self) -> int:
        return self.background.num_entities

    @property
    def is_sampled(self) -> bool:
        return self.background.is_sampled

    def at(self, entity: Tensor) -> Tensor:
        place, is_inside = self._places(entity)
        return torch.where(is_inside, self.score_M[place], self.background.at(entity))

    def weights(self, entity: Tensor) -> Tensor | None:
        outside_nK = self.background.weights(entity)
        if self.weight_MK is None or outside_nK is None:
            return None
        place, is_inside = self._places(entity)
        return torch.where(is_inside[:, None], self.weight_MK[place], outside_nK)

    def best(self, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        return self._best(count, self._candidates(without))

    def log_total(self, without: Tensor) -> float:
        return self._log_total(self._candidates(without))

    def ranked(self, count: int, without: Tensor) -> tuple[Tensor, Tensor, float]:
        candidates = self._candidates(without)
        return *self._best(count, candidates), self._log_total(candidates)

    def above(self, score: float, without: Tensor) -> int:
        candidates = self._candidates(without)
        return int((candidates.score > score).sum()) + self.background.above(score, candidates.not_outside)

    def dense(self) -> Tensor:
        score_N = self.background.at(torch.arange(self.num_entities))  # a copy
        score_N[self.entity_M] = self.score_M
        return score_N

    def _candidates(self, without: Tensor) -> _Candidates:
        is_inside = ~_is_in(self.entity_M, without.sort().values)
        not_outside = torch.cat((self.entity_M, without)).unique()
        return _Candidates(self.entity_M[is_inside], self.score_M[is_inside], not_outside)

    def _best(self, count: int, candidates: _Candidates) -> tuple[Tensor, Tensor]:
        outside, background = self.background.best(count, candidates.not_outside)
        entity, score = torch.cat((candidates.entity, outside)), torch.cat((candidates.score, background))
        best, index = score.topk(min(count, len(score)))
        return entity[index], best

    def _log_total(self, candidates: _Candidates) -> float:
        outside, highest = self.background.total(candidates.not_outside)
        parts = [candidates.score.double().logsumexp(0)[None]] if len(candidates.score) else []
        if outside > 0:
            parts.append(torch.tensor([outside], dtype=torch.double).log() + highest)
        return float(torch.cat(parts).logsumexp(0)) if parts else -torch.inf

    def _places(self, entity: Tensor) -> tuple[Tensor, Tensor]:
        ascending, order = self._sorted
        if not len(order):
            return torch.zeros_like(entity), torch.zeros_like(entity, dtype=torch.bool)
        at = torch.searchsorted(ascending, entity).clamp(max=len(order) - 1)
        return order[at], ascending[at] == entity

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor]:
        return tuple(self.entity_M.sort())  # type: ignore[return-value]


def _is_in(entity: Tensor, ascending: Tensor) -> Tensor:
    """Which of the entities are among others, given in ascending order."""
    if not len(ascending):
        return torch.zeros_like(entity, dtype=torch.bool)
    at = torch.searchsorted(ascending, entity).clamp(max=len(ascending) - 1)
    return ascending[at] == entity
