"""Projection: from a fuzzy set of entities along a relation to a fuzzy set. What the executor leaves to others.

B projections, N entities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.logic.traverse import Follow, as_membership, follow_edges

if TYPE_CHECKING:
    from scipy import sparse

# Where a projection starts: one entity, or a degree of membership for each, (N,).
Operand = int | Tensor


class Projector(ABC):
    """Projects on one graph."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg = kg
        self.follow: Follow = follow_edges(kg.edges)

    @abstractmethod
    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        """The degree to which each entity is reached, (B, N), from each operand along its relation (0..2R-1)."""


class Traversal(Projector):
    """No prediction: what the graph says is 1, all else 0."""

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        reached = [
            as_membership(self.follow(members(operand), relation), self.kg.num_entities)
            for operand, relation in zip(operands, relations, strict=True)
        ]
        return torch.stack(reached)


class Frequency(Projector):
    """The most frequent answers of a relation, wherever one starts; the most frequent one gets 1."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        from gamma_kg.predicting.baselines import answer_counts  # scipy is slow to load

        super().__init__(kg)
        self._counts: sparse.csr_array = answer_counts(kg)

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        counts_BN = torch.from_numpy(self._counts[np.asarray(relations)].toarray())
        return counts_BN / counts_BN.amax(1, keepdim=True).clamp_min(1)


def members(operand: Operand, above: float = 0.5) -> np.ndarray:
    """The entities of a set, as sorted ids: those whose degree is above a half."""
    if isinstance(operand, Tensor):
        return (operand > above).nonzero()[:, 0].numpy()
    return np.array([operand], dtype=np.int64)
