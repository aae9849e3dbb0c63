"""What a model says of all candidates of one query.

Whoever ranks asks here and never for a row of all entities: a local answer (`local_answers.py`) has none.

N entities, K branches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


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


def _best(score_N: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Ids and scores of the best of those that are no candidates at minus infinity."""
    best, index = score_N.topk(min(count, int(score_N.isfinite().sum())))
    return index, best


def _log_total(score_N: Tensor) -> float:
    return log_totals(score_N[None])[0]


def log_totals(score_QN: Tensor) -> list[float]:
    """log Σ exp of every row: the same bits for a row alone and among others, whatever the number of threads."""
    score = score_QN.double().numpy()
    top = score.max(axis=1, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(score - shift[:, None]).sum(axis=1)) + shift
    return [float(one) for one in total]
