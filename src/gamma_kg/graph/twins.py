"""Twins: entities with the same neighbours by the same relations. They have the same states, computed once here.

In a sparse graph many entities hang on one other by one fact, as many others do: NL-100 has 656 kinds of its 1,709
entities. Twins get two rows: one for all of them, and one for the single twin that a query may weigh otherwise than the
rest, its source for example.

B queries, N entities, R rows, C groups of twins.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.graph.starts import Starts

# Less than this part of the rows saved is not worth the way there and back.
WORTH_IT = 0.1

_found: weakref.WeakKeyDictionary[Edges, Twins | None] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Merged:
    """The starts of some queries on rows, and which entities are not where their twins are."""

    starts: Starts
    row_N: Tensor
    odd_query: Tensor
    odd_entity: Tensor
    odd_row: Tensor

    def by_entity(self, result_BR: Tensor) -> Tensor:
        """A result with a number for each row, for each entity: (B, N)."""
        result_BN = result_BR[:, self.row_N]
        result_BN[self.odd_query, self.odd_entity] = result_BR[self.odd_query, self.odd_row]
        return result_BN


@dataclass(frozen=True, eq=False)
class Twins:
    """A graph with two rows instead of each group of twins.

    An edge here says what is added at a node, and how often; its inverse may be there another number of times.
    """

    edges: EdgeGroups
    row_N: Tensor  # int64: the row of each entity
    spare_N: Tensor  # int64: the other row of its twins; its own where it has none
    group_N: Tensor  # int64: its group of twins, C where it has none
    some_C3: Tensor  # int64: three twins of each group; the first again where there are only two
    entity_R: Tensor  # int64: an entity of each row

    def merged(self, starts: Starts) -> Merged | None:
        """The starts on rows; None where two twins of a group are weighed otherwise than the rest."""
        if starts.is_single:
            query, entity = starts.query_S, starts.node_S
            weight_BR = torch.zeros(len(starts), self.edges.num_nodes)
            weight_BR[query, self.spare_N[entity]] = 1
            return Merged(_everywhere(weight_BR), self.row_N, query, entity, self.spare_N[entity])
        weight_BN = torch.zeros(len(starts), len(self.row_N))
        weight_BN[starts.query_S, starts.node_S] = 1.0 if starts.weight_S is None else starts.weight_S
        one_BC, two_BC, three_BC = weight_BN[:, self.some_C3].unbind(-1)
        # With one odd twin at most, two of three agree on what the rest have.
        common_BC = torch.where(one_BC == two_BC, one_BC, three_BC)
        has_twins_N = self.group_N < len(self.some_C3)
        common_BN = weight_BN.clone()
        common_BN[:, has_twins_N] = common_BC[:, self.group_N[has_twins_N]]
        query, entity = (weight_BN != common_BN).nonzero(as_tuple=True)
        row = self.spare_N[entity]
        if len((query * self.edges.num_nodes + row).unique()) < len(row):
            return None
        weight_BR = common_BN[:, self.entity_R]
        weight_BR[query, row] = weight_BN[query, entity]
        return Merged(_everywhere(weight_BR), self.row_N, query, entity, row)


def _everywhere(weight_BR: Tensor) -> Starts:
    """Starts at all rows, most of them perhaps with weight zero.

    With few starts a backend reads edges from the start's own end; here the other end has another count of them.
    """
    B, R = weight_BR.shape
    return Starts(torch.arange(R).repeat(B), weight_BR.reshape(-1), torch.arange(B + 1) * R)


def twins_of(edges: Edges) -> Twins | None:
    """The twins of a graph; None where they are too few to gain anything."""
    if edges not in _found:
        _found[edges] = _twins(edges)
    return _found[edges]


def _twins(edges: Edges) -> Twins | None:
    first_N = _first_of_its_kind(edges)
    kind_K, kind_N, size_K = np.unique(first_N, return_inverse=True, return_counts=True)
    shared_C = np.flatnonzero(size_K > 1)
    num_rows = len(kind_K) + len(shared_C)
    if num_rows > (1 - WORTH_IT) * edges.num_nodes:
        return None
    # The rows of all kinds come first, the second ones of twins after them.
    spare_K = np.arange(len(kind_K))
    spare_K[shared_C] = len(kind_K) + np.arange(len(shared_C))
    group_K = np.full(len(kind_K), len(shared_C))
    group_K[shared_C] = np.arange(len(shared_C))
    by_kind = np.argsort(kind_N, kind="stable")
    start_C, size_C = (np.cumsum(size_K) - size_K)[shared_C], size_K[shared_C]
    some_C3 = np.stack([by_kind[start_C + np.where(size_C > i, i, 0)] for i in range(3)], axis=1)
    entity_R = np.concatenate((kind_K, some_C3[:, 1]))
    at_N = kind_N.copy()
    at_N[some_C3[:, 1]] = spare_K[shared_C]  # among the neighbours of others, one of the twins stands for the odd one
    columns = (kind_N, spare_K[kind_N], group_K[kind_N], some_C3, entity_R)
    return Twins(_rows_of(edges, entity_R, at_N), *(torch.from_numpy(column) for column in columns))


def _first_of_its_kind(edges: Edges) -> NDArray[np.int64]:
    """For each entity the first one that has the same neighbours by the same relations: itself, or a twin."""
    node_ptr, group_ptr = edges.node_ptr.numpy(), edges.group_ptr.numpy()
    type_E = np.repeat(edges.group_type.numpy().astype(np.int64), np.diff(group_ptr))
    edge_E = type_E * edges.num_nodes + edges.neighbour.numpy()
    start_N1 = group_ptr[node_ptr]
    total_E1 = np.concatenate((np.zeros(1, np.uint64), np.cumsum(_mixed(edge_E), dtype=np.uint64)))
    count_N = np.diff(start_N1)
    key_N2 = np.stack((count_N.astype(np.uint64), np.diff(total_E1[start_N1])), axis=1)
    _, first, kind_N = np.unique(key_N2, axis=0, return_index=True, return_inverse=True)
    first_N: NDArray[np.int64] = first[kind_N.reshape(-1)]
    # Equal sums are a hint: what does not have the very same edges is taken for itself.
    inside_E = np.arange(len(edge_E)) - np.repeat(start_N1[:-1], count_N)
    is_other_E = edge_E != edge_E[np.repeat(start_N1[first_N], count_N) + inside_E]
    others = np.unique(np.repeat(np.arange(edges.num_nodes), count_N)[is_other_E])
    first_N[others] = others
    return first_N


def _mixed(number: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Numbers that look random, equal for equal ones: their sums tell sets apart."""
    mixed = number.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _rows_of(edges: Edges, entity_R: NDArray[np.int64], at_N: NDArray[np.int64]) -> EdgeGroups:
    """The edges of some entities, each neighbour on its row."""
    node_ptr, group_ptr = edges.node_ptr.numpy(), edges.group_ptr.numpy()
    group = _runs(node_ptr[entity_R], node_ptr[entity_R + 1])
    edge = _runs(group_ptr[group], group_ptr[group + 1])
    return EdgeGroups(
        num_nodes=len(entity_R),
        num_types=edges.num_types,
        node_ptr=torch.from_numpy(_ends(node_ptr[entity_R + 1] - node_ptr[entity_R])),
        group_type=edges.group_type[torch.from_numpy(group)],
        group_ptr=torch.from_numpy(_ends(group_ptr[group + 1] - group_ptr[group])),
        neighbour=torch.from_numpy(at_N[edges.neighbour.numpy()[edge]].astype(np.int32)),
        inverse=edges.inverse,
    )


def _runs(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of all the ranges start .. stop, one after the other."""
    size = stop - start
    numbers: NDArray[np.int64] = np.arange(int(size.sum())) + np.repeat(start - (np.cumsum(size) - size), size)
    return numbers


def _ends(size: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(size)))
