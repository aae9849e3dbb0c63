"""How often a model's first new answer only turns a stored fact around, for relations that are never symmetric.

(dog, hypernym, ?) answered with a hyponym of dog: the fact (hyponym, hypernym, dog) is in the graph, and nothing in the
graph is a hypernym both ways. Such an answer is wrong by the graph's own pattern, whatever the test triples say.
"""

from __future__ import annotations

import numpy as np
import torch

from gamma_kg.data.benchmark import Split
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.evaluation.split_graph import graph_of
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.graph.relation_pairs import KINDS
from gamma_kg.predicting.predictor import Predictor


def one_way_relations(kg: KnowledgeGraph) -> np.ndarray:
    """Which relations and inverses never hold both ways, (2R,)."""
    graph = kg.relation_graph_as("pairs")
    node, type_, _ = graph.slice(0, graph.num_edges)
    found = np.zeros(graph.num_nodes, dtype=bool)
    found[node[type_ == KINDS["pairs"][0].index("never")].numpy()] = True
    return found


def reversal_rate(predictor: Predictor, split: Split, *, limit: int | None = None, seed: int = 0) -> tuple[float, int]:
    """Share of the distinct queries of one-way relations whose first new answer is a fact reversed, and how many."""
    kg = graph_of(split)
    plan = QueryPlan.build(split, limit=limit, seed=seed)
    one_way = one_way_relations(kg)
    known = KnownAnswers.build(split.graph, split.num_entities, split.num_relations)
    reversed_, asked = 0, 0
    for batch in plan.batches():
        chosen = one_way[batch.relation]
        if not chosen.any():
            continue
        source, relation = batch.source[chosen], batch.relation[chosen]
        scores = predictor.scores(kg, torch.from_numpy(source), torch.from_numpy(relation)).clone()
        row, entity = known.of(source, relation)
        scores[torch.from_numpy(row), torch.from_numpy(entity)] = -torch.inf
        scores[torch.arange(len(source)), torch.from_numpy(source)] = -torch.inf
        first = scores.argmax(dim=1).numpy()
        inverse = kg.inverse(torch.from_numpy(relation)).numpy()
        row, entity = known.of(source, inverse)
        reversed_ += len(np.unique(row[entity == first[row]]))
        asked += len(source)
    return (reversed_ / asked if asked else float("nan")), asked
