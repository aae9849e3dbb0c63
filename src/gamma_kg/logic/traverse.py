"""What follows from a graph without prediction: sets of entities as sorted ids, found by following facts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.logic.formula import Along, And, Entity, Everything, Formula, Not, Or

IntArray = NDArray[np.int64]
# Where one gets from some entities along a relation (an id of 0..2R-1): sorted, each once.
Follow = Callable[[IntArray, int], IntArray]
# From more entities than this, one look at all groups of edges is quicker than one search per entity.
FEW = 256


def follow_known(known: KnownAnswers) -> Follow:
    """Follows facts by bisection: for many questions on one set of facts."""

    def follow(start: IntArray, relation: int) -> IntArray:
        _, found = known.of(start, np.full(len(start), relation, dtype=np.int64))
        return np.unique(found)

    return follow


def follow_edges(edges: Edges) -> Follow:
    """Follows the edges of a graph as they lie there, nothing is built: for one question on a graph of any size."""
    node_ptr, group_type = edges.node_ptr.numpy(), edges.group_type.numpy()
    group_ptr, neighbour = edges.group_ptr.numpy(), edges.neighbour.numpy()

    def follow(start: IntArray, relation: int) -> IntArray:
        if len(start) <= FEW:
            groups = []
            for node in start.tolist():
                low, high = int(node_ptr[node]), int(node_ptr[node + 1])
                groups.append(low + np.flatnonzero(group_type[low:high] == relation))
            group = np.concatenate(groups) if groups else np.empty(0, dtype=np.int64)
        else:
            group = np.flatnonzero(group_type == relation)
            owner = np.searchsorted(node_ptr, group, side="right") - 1
            group = group[np.isin(owner, start, assume_unique=False)]
        first, count = group_ptr[group], group_ptr[group + 1] - group_ptr[group]
        position = np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
        return np.unique(neighbour[position]).astype(np.int64)

    return follow


def traverse(formula: Formula, follow: Follow, num_entities: int) -> IntArray:
    """The entities that fulfil the formula by the facts followed; sorted."""
    if isinstance(formula, Entity):
        return np.array([formula.entity], dtype=np.int64)
    if isinstance(formula, Everything):
        return np.arange(num_entities)
    if isinstance(formula, Along):
        return follow(traverse(formula.of, follow, num_entities), int(formula.relation))
    if isinstance(formula, Not):
        return _without(np.arange(num_entities), traverse(formula.of, follow, num_entities))
    assert isinstance(formula, And | Or)
    if isinstance(formula, Or):
        return np.unique(np.concatenate([traverse(part, follow, num_entities) for part in formula.members]))
    # What is denied is taken away from what is left, so that no complement of a whole graph is needed.
    members = sorted(formula.members, key=lambda part: isinstance(part, Not))
    found = traverse(members[0], follow, num_entities)
    for part in members[1:]:
        if isinstance(part, Not):
            found = _without(found, traverse(part.of, follow, num_entities))
        else:
            found = np.intersect1d(found, traverse(part, follow, num_entities), assume_unique=True)
    return found


def partly_seen(formula: Formula, seen: Follow, true: Follow, num_entities: int) -> tuple[IntArray, IntArray]:
    """(answers by the true facts, those of them that some chain of reasoning with a seen fact leads to).

    An answer in the first and not in the second needs ALL its links predicted. Denied parts count for neither.
    """
    nothing = np.empty(0, dtype=np.int64)
    if isinstance(formula, Along):
        answers, helped = partly_seen(formula.of, seen, true, num_entities)
        relation = int(formula.relation)
        return true(answers, relation), np.union1d(seen(answers, relation), true(helped, relation))
    if isinstance(formula, And | Or):
        answers = traverse(formula, true, num_entities)
        found = [partly_seen(part, seen, true, num_entities) for part in formula.members if not isinstance(part, Not)]
        helped = np.unique(np.concatenate([part_helped for _, part_helped in found] or [nothing]))
        return answers, np.intersect1d(answers, helped, assume_unique=True)
    return traverse(formula, true, num_entities), nothing


def _without(found: IntArray, gone: IntArray) -> IntArray:
    return np.setdiff1d(found, gone, assume_unique=True)


def as_membership(ids: IntArray, num_entities: int) -> torch.Tensor:
    """1 for the entities of the set, 0 for the others, (N,)."""
    member_N = torch.zeros(num_entities)
    member_N[torch.from_numpy(ids)] = 1
    return member_N
