"""Baselines that cost nothing to train. A foundation model that does not beat them on a graph should be seen not to.

B queries, N entities, R relations without inverses.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import both_ways
from gamma_kg.machine.memory import budget
from gamma_kg.nn.model import Scores
from gamma_kg.predicting.inference import check_queries
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.predicting.score_batch import ScoreBatch
from gamma_kg.predicting.switch import Local

RESTART = 0.15
ITERATIONS = 30


class GraphBaseline(Predictor):
    """A baseline that prepares something once per graph: `prepare(kg)`, then `score(prepared, source_B, …)`."""

    def __init__(
        self, name: str, prepare: Callable[[KnowledgeGraph], Any], score: Callable[[Any, Tensor, Tensor], Tensor]
    ) -> None:
        super().__init__()
        self._name = name
        self._prepare, self._score = prepare, score
        self._prepared: weakref.WeakKeyDictionary[KnowledgeGraph, Any] = weakref.WeakKeyDictionary()

    def fingerprint(self) -> str:
        """The name carries a version, to be raised when the scores change."""
        return hashlib.sha256(self._name.encode()).hexdigest()

    def score_batches(
        self,
        kg: KnowledgeGraph,
        source_Q: Tensor,
        relation_Q: Tensor,
        memory: str | int | None = None,
        local: Local = "auto",
    ) -> Iterator[ScoreBatch]:
        check_queries(kg, source_Q, relation_Q)
        if kg not in self._prepared:
            self._prepared[kg] = self._prepare(kg)
        # Two tables of float64 per query, whatever the baseline.
        size = max(1, budget(memory) // (16 * max(kg.num_entities, 1)))
        for query in torch.arange(len(source_Q)).split(size):
            score_BN = self._score(self._prepared[kg], source_Q[query], relation_Q[query])
            yield ScoreBatch(query, torch.arange(len(query)), Scores(score_BN, None))


def transition_matrix(kg: KnowledgeGraph) -> sparse.csr_array:
    """[v, u]: chance to step from u to v along any edge in either direction; each linked pair counts once."""
    head, _, tail = kg.triples.numpy().T
    rows, columns = np.concatenate((head, tail)), np.concatenate((tail, head))
    pairs = np.unique(rows * kg.num_entities + columns)
    rows, columns = divmod(pairs, max(kg.num_entities, 1))
    degree = np.bincount(columns, minlength=kg.num_entities)
    return sparse.csr_array((1 / degree[columns], (rows, columns)), shape=(kg.num_entities, kg.num_entities))


def personalised_pagerank(step_NN: sparse.csr_array, source_B: Tensor, relation_B: Tensor) -> Tensor:
    """Chance to be at each entity for a walker that returns to the source with probability 0.15, (B, N)."""
    start_NB = np.zeros((step_NN.shape[0], len(source_B)))
    start_NB[source_B.numpy(), np.arange(len(source_B))] = 1
    visits_NB = start_NB
    for _ in range(ITERATIONS):
        visits_NB = (1 - RESTART) * (step_NN @ visits_NB) + RESTART * start_NB
    return torch.from_numpy(np.ascontiguousarray(visits_NB.T))


def answer_counts(kg: KnowledgeGraph) -> sparse.csr_array:
    """[r, e]: how often e is the answer of relation r in the graph, inverses included, (2R, N)."""
    _, rows, columns = both_ways(kg.triples.numpy(), kg.num_relations)
    # Entries of the same place are added up.
    return sparse.csr_array(
        (np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(kg.num_types, kg.num_entities)
    )


def most_frequent(counts: sparse.csr_array, source_B: Tensor, relation_B: Tensor) -> Tensor:
    """The counts of the relation, whatever the source, (B, N)."""
    return torch.from_numpy(counts[relation_B.numpy()].toarray())


def pagerank_baseline() -> GraphBaseline:
    return GraphBaseline("ppr 1", transition_matrix, personalised_pagerank)


def frequency_baseline() -> GraphBaseline:
    return GraphBaseline("frequency 1", answer_counts, most_frequent)
