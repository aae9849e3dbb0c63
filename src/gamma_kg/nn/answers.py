"""What a model says of all candidates of one query: from the whole graph, or from a neighbourhood and a background.

Whoever ranks asks here and never for a row of all entities: a local answer has scores for the entities of its
neighbourhood, and for all others those of the background, which is shared by all queries of the relation.

N entities, M of them with a score of their own, K branches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

# The best of a background are sorted once; a query looks through as many of them as it needs.
SORTED = 1 << 14


class Answers(ABC):
    """Scores of all candidates of one query. `without` are entities (int64 ids) that are no candidates."""

    @property
    def local(self) -> int | None:
        """How many facts the neighbourhood may have; None: computed on the whole graph."""
        return None

    @property
    def is_sampled(self) -> bool:
        """Whether scores outside of the neighbourhood come from a sample of the graph."""
        return False

    @property
    @abstractmethod
    def num_entities(self) -> int: ...

    @abstractmethod
    def at(self, entity: Tensor) -> Tensor:
        """Scores of the given entities."""

    @abstractmethod
    def weights(self, entity: Tensor) -> Tensor | None:
        """Branch weights of the given entities, (n, K); None where the model has none."""

    @abstractmethod
    def best(self, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        """Ids and scores of the `count` best candidates, best first."""

    @abstractmethod
    def log_total(self, without: Tensor) -> float:
        """log Σ exp(score) over all candidates: a candidate's log share is its score less this."""

    @abstractmethod
    def above(self, score: float, without: Tensor) -> int:
        """How many candidates score more than this."""

    @abstractmethod
    def dense(self) -> Tensor:
        """The score of every entity, (N,)."""

    def ranked(self, count: int, without: Tensor) -> tuple[Tensor, Tensor, float]:
        """`best` and `log_total` at once."""
        return *self.best(count, without), self.log_total(without)

    def rank(self, entity: int, without: Tensor) -> int:
        """1 + candidates that score more."""
        return 1 + self.above(float(self.at(torch.tensor([entity]))[0]), without)


@dataclass(frozen=True, eq=False)
class WholeAnswers(Answers):
    """Scores from the whole graph: one for each entity."""

    score_N: Tensor
    weight_NK: Tensor | None

    @property
    def num_entities(self) -> int:
        return len(self.score_N)

    def at(self, entity: Tensor) -> Tensor:
        return self.score_N[entity]

    def weights(self, entity: Tensor) -> Tensor | None:
        return None if self.weight_NK is None else self.weight_NK[entity]

    def best(self, count: int, without: Tensor) -> tuple[Tensor, Tensor]:
        return _best(self._candidates(without), count)

    def log_total(self, without: Tensor) -> float:
        return _log_total(self._candidates(without))

    def ranked(self, count: int, without: Tensor) -> tuple[Tensor, Tensor, float]:
        score_N = self._candidates(without)
        return *_best(score_N, count), _log_total(score_N)

    def above(self, score: float, without: Tensor) -> int:
        return int((self._candidates(without) > score).sum())

    def dense(self) -> Tensor:
        return self.score_N

    def _candidates(self, without: Tensor) -> Tensor:
        return self.score_N.index_fill(0, without, -torch.inf)


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
        step = count + 64
        for end in range(step, len(self._top) + step, step):
            entity = self._top[:end]
            entity = entity[~is_in(entity, without)]
            if len(entity) >= count or (end >= len(self._top) and len(self._top) == len(self.score_M)):
                break
        else:  # the neighbourhood holds nearly all of the best: look at all
            excluded = without if self.entity_M is None else self._places(without)[0][self._places(without)[1]]
            score_M = self.score_M.index_fill(0, excluded, -torch.inf)
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


@dataclass(frozen=True, eq=False)
class LocalAnswers(Answers):
    """Scores from a neighbourhood; those of all other entities are the background's."""

    triples: int  # at most so many in the neighbourhood
    entity_M: Tensor  # in the neighbourhood, in any order
    score_M: Tensor
    weight_MK: Tensor | None
    background: Background

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
        is_candidate = ~is_in(self.entity_M, without.sort().values)
        inside, score = self.entity_M[is_candidate], self.score_M[is_candidate]
        outside, background = self.background.best(count, self._taken(without))
        entity, score = torch.cat((inside, outside)), torch.cat((score, background))
        best, index = score.topk(min(count, len(score)))
        return entity[index], best

    def log_total(self, without: Tensor) -> float:
        outside, highest = self.background.total(self._taken(without))
        inside = self.score_M[~is_in(self.entity_M, without.sort().values)].double()
        parts = [inside.logsumexp(0)[None]] if len(inside) else []
        if outside > 0:
            parts.append(torch.tensor([outside], dtype=torch.double).log() + highest)
        return float(torch.cat(parts).logsumexp(0)) if parts else -torch.inf

    def above(self, score: float, without: Tensor) -> int:
        inside = (self.score_M > score) & ~is_in(self.entity_M, without.sort().values)
        return int(inside.sum()) + self.background.above(score, self._taken(without))

    def dense(self) -> Tensor:
        score_N = self.background.at(torch.arange(self.num_entities))  # a copy
        score_N[self.entity_M] = self.score_M
        return score_N

    def _taken(self, without: Tensor) -> Tensor:
        """Entities that are not scored by the background, ascending."""
        taken: Tensor = torch.cat((self.entity_M, without)).unique()
        return taken

    def _places(self, entity: Tensor) -> tuple[Tensor, Tensor]:
        ascending, order = self._sorted
        if not len(order):
            return torch.zeros_like(entity), torch.zeros_like(entity, dtype=torch.bool)
        at = torch.searchsorted(ascending, entity).clamp(max=len(order) - 1)
        return order[at], ascending[at] == entity

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor]:
        return tuple(self.entity_M.sort())  # type: ignore[return-value]


def _best(score_N: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Ids and scores of the best of those that are no candidates at minus infinity."""
    best, index = score_N.topk(min(count, int(score_N.isfinite().sum())))
    return index, best


def _log_total(score_N: Tensor) -> float:
    return float(score_N.double().logsumexp(0))


def is_in(entity: Tensor, ascending: Tensor) -> Tensor:
    """Which of the entities are among others, given in ascending order."""
    if not len(ascending):
        return torch.zeros_like(entity, dtype=torch.bool)
    at = torch.searchsorted(ascending, entity).clamp(max=len(ascending) - 1)
    return ascending[at] == entity
