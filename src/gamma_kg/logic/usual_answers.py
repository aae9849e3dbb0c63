"""How many answers a query of each relation usually has: the mean over the entities that have any.

A neighbour country is one of five, a capital the only one. Scores share one probability among all answers, so an answer
to the first needs a fifth of the share of the second to be as likely.

S relations with their inverses.
"""

from __future__ import annotations

import weakref

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph

_found: weakref.WeakKeyDictionary[KnowledgeGraph, Tensor] = weakref.WeakKeyDictionary()


def usual_answers(kg: KnowledgeGraph) -> Tensor:
    """For each relation (0..2R-1), at least 1, (S,); of a large graph by a sample of its entities."""
    if kg not in _found:
        from gamma_kg.rules.sample import EntitySample  # scipy is slow to load

        sample = EntitySample(kg.edges)
        answers_S = np.bincount(sample.slot_G, sample.size_G, minlength=kg.num_types)
        usual_S = answers_S / np.maximum(sample.fillers_S, 1)
        _found[kg] = torch.from_numpy(np.maximum(usual_S, 1).astype(np.float32))
    return _found[kg]
