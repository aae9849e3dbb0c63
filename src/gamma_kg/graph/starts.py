"""Where queries start: for each query a sparse set of nodes with weights. One node with weight one is the usual case.

B queries, S starts of all of them together, N nodes, D channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Starts:
    """Query b starts at node_S[offset[b] : offset[b + 1]], which are ascending and distinct; there may be none."""

    node_S: Tensor  # int64 [S]
    weight_S: Tensor | None  # [S], may want a gradient; None: all one
    offset_B1: Tensor  # int64 [B + 1]

    @classmethod
    def single(cls, source_B: Tensor) -> Starts:
        """One node a query, with weight one."""
        return cls(source_B, None, torch.arange(len(source_B) + 1, device=source_B.device))

    @classmethod
    def of_weights(cls, query_M: Tensor, node_M: Tensor, weight_M: Tensor, num_queries: int) -> Starts:
        """From (query, node, weight) in any order; the weights of a repeated pair are added."""
        span = int(node_M.max()) + 1 if len(node_M) else 1
        key_S, place_M = (query_M * span + node_M).unique(return_inverse=True)
        weight_S = weight_M.new_zeros(len(key_S)).index_add(0, place_M, weight_M)
        queries = torch.arange(num_queries + 1, device=node_M.device)
        return cls(key_S % span, weight_S, torch.searchsorted(key_S, queries * span))

    @classmethod
    def of_dense(cls, weight_BN: Tensor) -> Starts:
        """The entries of a matrix that are not zero. NaN is one of them, so that whoever scores can refuse it."""
        query_S, node_S = weight_BN.nonzero(as_tuple=True)
        queries = torch.arange(len(weight_BN) + 1, device=weight_BN.device)
        return cls(node_S, weight_BN[query_S, node_S], torch.searchsorted(query_S, queries))

    def __len__(self) -> int:
        """How many queries there are."""
        return len(self.offset_B1) - 1

    @property
    def is_single(self) -> bool:
        """Whether every query starts at one node with weight one; found out without looking at the numbers."""
        return self.weight_S is None and len(self.node_S) == len(self)

    @cached_property
    def query_S(self) -> Tensor:
        """The query that each start belongs to, int64 [S]."""
        queries = torch.arange(len(self), device=self.node_S.device)
        return queries if self.is_single else queries.repeat_interleave(self.offset_B1.diff())

    def __getitem__(self, part: slice) -> Starts:
        """The starts of some queries in a row."""
        first, last, step = part.indices(len(self))
        assert step == 1, "queries in a row"
        offset = self.offset_B1[first : max(first, last) + 1]
        inside = part if self.is_single else slice(int(offset[0]), int(offset[-1]))
        weight = None if self.weight_S is None else self.weight_S[inside]
        return Starts(self.node_S[inside], weight, offset - offset[0])

    def select(self, query_P: Tensor) -> Starts:
        """The starts of the given queries, in the given order."""
        if self.is_single:
            return Starts.single(self.node_S[query_P])
        first_P = self.offset_B1[query_P]
        count_P = self.offset_B1[query_P + 1] - first_P
        offset = torch.cat((count_P.new_zeros(1), count_P.cumsum(0)))
        inside = torch.arange(int(offset[-1]), device=offset.device) + (first_P - offset[:-1]).repeat_interleave(
            count_P
        )
        return Starts(self.node_S[inside], None if self.weight_S is None else self.weight_S[inside], offset)

    def renamed(self, place_N: Tensor) -> Starts:
        """The same starts where node n is called place_N[n]."""
        if self.is_single:
            return Starts.single(place_N[self.node_S])
        if self.weight_S is not None and len(self.node_S) == len(self) * len(place_N):  # each query starts everywhere
            weight_BN = self.weight_S.view(len(self), -1)
            weight_S = torch.empty_like(weight_BN).index_copy_(1, place_N, weight_BN).view(-1)
            return Starts(self.node_S, weight_S, self.offset_B1)
        key_S, order_S = (self.query_S * len(place_N) + place_N[self.node_S]).sort()
        weight = None if self.weight_S is None else self.weight_S[order_S]
        return Starts(key_S % max(len(place_N), 1), weight, self.offset_B1)

    def to(self, device: torch.device | str) -> Starts:
        """These starts on another device; itself when they are there already."""
        if torch.device(device) == self.node_S.device:
            return self
        weight = None if self.weight_S is None else self.weight_S.to(device)
        return Starts(self.node_S.to(device), weight, self.offset_B1.to(device))

    def rows(self, vector_BD: Tensor) -> Tensor:
        """Each query's vector times the weight of each of its starts, (S, D)."""
        if self.is_single:
            return vector_BD
        row_SD = vector_BD[self.query_S]
        return row_SD if self.weight_S is None else row_SD * self.weight_S[:, None]

    def spread(self, num_nodes: int, vector_BD: Tensor) -> Tensor:
        """Zeros with weight · vector at each start, (B, N, D): the initial states, and the boundary of every layer."""
        x_BND = vector_BD.new_zeros(len(self), num_nodes, vector_BD.shape[1])
        return x_BND.index_put_((self.query_S, self.node_S), self.rows(vector_BD))

    def __repr__(self) -> str:
        return f"Starts({len(self)} queries, {len(self.node_S)} starts)"
