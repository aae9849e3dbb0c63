"""What an answer is computed on, by the graph's own ids: all of its edges, or those of one neighbourhood.

E edges, N nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups, Edges

Triple = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Ground:
    """Edges, and which entity each of their nodes is; None: nodes are numbered as entities are."""

    edges: Edges
    entity_N: Tensor | None = None

    def node(self, entity: int) -> int | None:
        """Its node; None: it is outside."""
        return entity if self._place is None else self._place.get(entity)

    def less(self, triples: Sequence[Triple]) -> Ground:
        """The same without some facts."""
        return replace(self, edges=self.edges.without(self._positions(triples)))

    def less_each(self, removals: Sequence[Sequence[Triple]]) -> EdgeGroups:
        """The same without some facts, without some others, and so on, side by side as one graph."""
        copy, *ends = self._inside([(copy, *triple) for copy, triples in enumerate(removals) for triple in triples])
        return self.edges.copies_without(len(removals), copy.repeat(2), *self._both_ways(*ends))

    def only(self, triples: Sequence[Triple]) -> Ground:
        """The same nodes with no other facts than these."""
        rest = torch.ones(self.edges.num_edges, dtype=torch.bool, device=self.edges.device)
        rest[self._positions(triples)] = False
        return replace(self, edges=self.edges.without(rest.nonzero()[:, 0]))

    def ends(self) -> NDArray[np.int64]:
        """(entity, relation or inverse, entity) of each edge, (E, 3)."""
        node, type_, neighbour = (array.cpu() for array in self.edges.slice(0, self.edges.num_edges))
        if self.entity_N is not None:
            node, neighbour = self.entity_N[node], self.entity_N[neighbour]
        return torch.stack((node, type_, neighbour), 1).numpy()

    def _positions(self, triples: Sequence[Triple]) -> Tensor:
        """Where the facts stand among the edges, in both directions; those that are outside do not."""
        _, *ends = self._inside([(0, *triple) for triple in triples])
        return self.edges.find(*self._both_ways(*ends))

    def _inside(self, numbered: Sequence[tuple[int, int, int, int]]) -> Tensor:
        """(number, node, relation, node) of those facts whose ends are both inside, as four rows."""
        placed = [(number, self.node(h), r, self.node(t)) for number, h, r, t in numbered]
        inside = [row for row in placed if None not in row]
        return torch.tensor(inside, dtype=torch.long, device=self.edges.device).reshape(-1, 4).T

    def _both_ways(self, head: Tensor, relation: Tensor, tail: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The two edges that a fact is."""
        type_ = torch.cat([relation, self.edges.inverse[relation].long()])
        return torch.cat([head, tail]), type_, torch.cat([tail, head])

    @cached_property
    def _place(self) -> dict[int, int] | None:
        if self.entity_N is None:
            return None
        return {entity: place for place, entity in enumerate(self.entity_N.tolist())}
