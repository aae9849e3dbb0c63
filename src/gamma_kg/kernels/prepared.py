"""A graph as a backend computes on it fastest: on its device, and with the nodes numbered so that neighbours in the
graph are neighbours in the caches, where that gains something.

Worth making for a graph that is asked again and again. Nobody outside sees the new numbers: starts are `renamed` on
their way in, results are `by_node` on their way out.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts


@dataclass(frozen=True, eq=False, repr=False)
class PreparedEdges(EdgeGroups):
    """The same edges under numbers of their own, the groups of a node in no order of type."""

    place_N: Tensor | None = None  # int64: the new number of each node; None: its own

    def renamed(self, starts: Starts) -> Starts:
        """The starts under the numbers of this graph, on its device."""
        starts = starts.to(self.device)
        return starts if self.place_N is None else starts.renamed(self.place_N)

    def by_node(self, result_BN: Tensor) -> Tensor:
        """A result with a row or a number for each node along the second axis, in the order of the graph it is of."""
        return result_BN if self.place_N is None else result_BN[:, self.place_N]
