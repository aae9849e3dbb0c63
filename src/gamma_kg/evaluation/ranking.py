"""Where an answer ranks among the entities that are not known to be true. The tie rules live here.

Shapes: B queries, N entities, A answers (a query may have several), K known (query, entity) pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

IntArray = NDArray[np.int64]
UNRANKED = -1

# Answers are compared with all entities at once, in slices of about this many numbers.
SLICE = 1 << 23


@dataclass(frozen=True, eq=False)
class RivalCounts:
    """Per answer: rivals that score higher, the same, and in all, int64 (A,); `UNRANKED`: not computed yet."""

    above: IntArray
    tied: IntArray
    total: IntArray

    @classmethod
    def empty(cls, size: int) -> RivalCounts:
        return cls(*(np.full(size, UNRANKED, dtype=np.int64) for _ in range(3)))

    def put(self, position: IntArray, others: RivalCounts) -> None:
        """Write the counts of some answers where they belong."""
        self.above[position], self.tied[position], self.total[position] = others.above, others.tied, others.total

    def take_over(self, others: Iterable[RivalCounts]) -> None:
        """Fill in what others have ranked."""
        for other in others:
            is_ranked = other.above != UNRANKED
            self.put(np.flatnonzero(is_ranked), RivalCounts(*(part[is_ranked] for part in other.parts)))

    @property
    def parts(self) -> tuple[IntArray, IntArray, IntArray]:
        return self.above, self.tied, self.total

    @property
    def is_complete(self) -> bool:
        return bool((self.above != UNRANKED).all())

    def published_rank(self) -> IntArray:
        """1 + rivals that score at least as high: a tie counts against the model, as in the published tables."""
        return 1 + self.above + self.tied

    def fair_rank(self) -> NDArray[np.float64]:
        """The mean of the best and the worst rank that the ties allow."""
        return 1 + self.above + self.tied / 2


def count_rivals(
    scores_BN: Tensor, row_A: Tensor, answer_A: Tensor, known_row_K: Tensor, known_K: Tensor
) -> RivalCounts:
    """Compare answer a of query row_A[a] with the entities that are not known to answer that query.

    The known pairs must hold the answers themselves. Scores must be finite: comparisons with NaN are false, so a
    diverged model would rank first.
    """
    truth_A = scores_BN[row_A, answer_A]
    rivals_BN = scores_BN.clone()
    rivals_BN[known_row_K, known_K] = -torch.inf
    num_entities = scores_BN.shape[1]
    total_B = num_entities - torch.bincount(known_row_K, minlength=len(scores_BN))
    above_A = torch.empty(len(row_A), dtype=torch.long, device=scores_BN.device)
    tied_A = torch.empty_like(above_A)
    step = max(1, SLICE // max(num_entities, 1))
    for start in range(0, len(row_A), step):
        part = slice(start, start + step)
        rivals_PN, truth_P1 = rivals_BN[row_A[part]], truth_A[part, None]
        above_A[part] = (rivals_PN > truth_P1).sum(1)
        tied_A[part] = (rivals_PN == truth_P1).sum(1)
    return RivalCounts(*(found.cpu().numpy() for found in (above_A, tied_A, total_B[row_A])))
