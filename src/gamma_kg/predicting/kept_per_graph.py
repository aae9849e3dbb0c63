"""What a model makes of a graph, kept for as long as the graph lives and the weights stay what they were."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from torch import nn

from gamma_kg.graph.graph import KnowledgeGraph

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class KeptPerGraph(Generic[Key, Value]):
    """A table per graph, for one model.

    Several threads may ask at once: one computes what is missing, the others wait for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graphs: weakref.WeakKeyDictionary[KnowledgeGraph, OrderedDict[Key, Value]] = weakref.WeakKeyDictionary()
        self._weights: tuple[tuple[int, int], ...] = ()

    @contextmanager
    def of(self, model: nn.Module, kg: KnowledgeGraph) -> Iterator[OrderedDict[Key, Value]]:
        """The table of a graph, for one thread at a time; whoever adds to it sees to its size."""
        with self._lock:
            weights = weights_version(model)
            if weights != self._weights:  # the model was trained, loaded or moved since
                self._graphs.clear()
                self._weights = weights
            yield self._graphs.setdefault(kg, OrderedDict())


def weights_version(model: nn.Module) -> tuple[tuple[int, int], ...]:
    """Other than before if weights were trained, loaded or moved since.

    Asked at every query, and so without the names that `model.parameters()` makes on its way.
    """
    found: list[tuple[int, int]] = []
    modules = [model]
    while modules:
        module = modules.pop()
        found += [(p.data_ptr(), p._version) for p in module._parameters.values() if p is not None]
        modules += [child for child in module._modules.values() if child is not None]
    return tuple(found)
