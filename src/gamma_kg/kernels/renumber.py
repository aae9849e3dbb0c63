"""A graph whose nodes are numbered for speed: neighbours in the graph become neighbours in the caches.

Worth making for a graph that is asked again and again. Whoever makes it asks with `place[source]` and finds the score
of an entity at `place[entity]`; nobody else sees the new numbers.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.kernels import native


class Renumbered(NamedTuple):
    """The same edges under new numbers (the groups of a node in no order of type), and the new number of each node."""

    edges: Edges
    place: Tensor  # int64 [num_nodes]


_made: weakref.WeakKeyDictionary[Edges, Renumbered] = weakref.WeakKeyDictionary()


def renumbered(edges: Edges) -> Renumbered:
    """Made once and kept as long as `edges` (src/csrc/graph.cpp: the order); as it is where kernels can't run."""
    if not native.is_available() or edges.device.type != "cpu":
        return Renumbered(edges, torch.arange(edges.num_nodes, device=edges.device))
    if edges not in _made:
        old, place = native.arrays(edges), torch.empty(edges.num_nodes, dtype=torch.int32)
        new = old._replace(
            **{name: torch.empty_like(array) for name, array in old._asdict().items() if name != "inverse"}
        )
        native.renumber(old, place, new)
        _made[edges] = Renumbered(replace(edges, **new._asdict()), place.long())
    return _made[edges]
