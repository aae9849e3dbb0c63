"""Training the step of logical queries: from weights of link prediction, on sampled queries of one to three steps.

Each draw is a subgraph of a training graph. A part of its facts is hidden (traversal dropout), queries are sampled
whose answers need them, and the whole query is executed with gradients: through and, or, not and every projection.
The loss compares each hard answer with all entities that are no answers.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.sampling import SubgraphOptions, TrainingGraph, sample_subgraph
from gamma_kg.logic.execute import execute
from gamma_kg.logic.predicted import StepOptions, degrees, even_chance, starts_of, with_facts
from gamma_kg.logic.project import Operand, Projector
from gamma_kg.logic.sample import Facts, LogicalQuery, sample_queries
from gamma_kg.nn.model import GammaModel, RelationStates
from gamma_kg.training.loss import softmax_loss
from gamma_kg.training.optimizer import adamw

SMALLEST = 1e-9  # a degree of zero has no logarithm


@dataclass(frozen=True)
class QueryTraining:
    """How the step is trained. `hidden` are bounds of the share of facts that is taken out of a subgraph; `minutes` are
    those of the processor, so that a busy machine takes longer and makes as many steps."""

    shapes: tuple[str, ...] = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up", "2in", "3in", "inp", "pin", "pni")
    entities: tuple[int, int] = (200, 900)
    max_triples: int = 6_000
    hidden: tuple[float, float] = (0.1, 0.4)
    queries_per_draw: int = 8
    learning_rate: float = 1e-4
    average: float = 0.98
    warm_up: int = 20
    steps: int = 500
    minutes: float = 40.0
    seed: int = 0


class TrainedSteps(Projector):
    """Projection by a model with gradients, into its weights and into the operands."""

    def __init__(self, model: GammaModel, kg: KnowledgeGraph, options: StepOptions) -> None:
        super().__init__(kg)
        self.model, self.options = model, options

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        relation_B = torch.tensor(relations)
        condition_B = self.kg.direct(relation_B) if self.options.direct else relation_B
        asked_U, which_B = condition_B.unique(return_inverse=True)
        relation_graph = self.kg.relation_graph_as(self.model.config.relation_graph)
        states = RelationStates(self.model.encode_relations(relation_graph, asked_U), which_B)
        starts = starts_of(operands, self.options.threshold, unit=self.options.unit)
        score_BN = self.model.score_entities(self.kg.edges, states, starts, relation_B).score_BC
        degree_BN = degrees(score_BN.float(), even_chance(self.kg, relation_B, self.options))
        return with_facts(degree_BN, operands, relations, self.follow) if self.options.facts else degree_BN


def draw(
    graphs: Sequence[TrainingGraph], config: QueryTraining, rng: np.random.Generator
) -> tuple[KnowledgeGraph, list[LogicalQuery]]:
    """A subgraph of a graph less some facts, and queries that need those; the list may be empty."""
    graph = graphs[int(rng.integers(len(graphs)))]
    options = SubgraphOptions(entities=config.entities, max_triples=config.max_triples, drop_chance=0.0)
    subgraph = sample_subgraph(graph, options, rng)
    seen = subgraph.triples[rng.random(len(subgraph.triples)) >= rng.uniform(*config.hidden)]
    names = [str(i) for i in range(max(subgraph.num_entities, subgraph.num_relations))]
    kg = KnowledgeGraph(seen, names[: subgraph.num_entities], names[: subgraph.num_relations])
    if not len(seen):
        return kg, []
    facts = Facts(seen, subgraph.triples, subgraph.num_entities, subgraph.num_relations)
    queries: list[LogicalQuery] = []
    for shape in rng.choice(config.shapes, config.queries_per_draw):
        seed = int(rng.integers(2**31))
        queries += sample_queries(facts, 1, shapes=[str(shape)], seed=seed, max_answers=len(names) // 4)
    return kg, queries


def query_loss(queries: Sequence[LogicalQuery], projector: Projector) -> Tensor:
    """Cross-entropy of each hard answer against the entities that are no answers, by the logarithm of degrees."""
    found = execute([query.formula for query in queries], projector)
    level_QN = torch.stack([found[query.formula] for query in queries]).clamp_min(SMALLEST).log()
    right_QN = torch.zeros(level_QN.shape, dtype=torch.bool)
    wrong_QN = torch.ones(level_QN.shape, dtype=torch.bool)
    for q, query in enumerate(queries):
        right_QN[q, torch.from_numpy(query.hard)] = True
        wrong_QN[q, torch.from_numpy(np.union1d(query.easy, query.hard))] = False
    return softmax_loss(level_QN, right_QN, wrong_QN)


def train_queries(
    model: GammaModel,
    graphs: Sequence[TrainingGraph],
    options: StepOptions,
    config: QueryTraining,
    log: Callable[[int, float, GammaModel], None] | None = None,
) -> GammaModel:
    """The moving average of the weights after training; `model` itself holds the last ones."""
    rng = np.random.default_rng(config.seed)
    torch.manual_seed(config.seed)
    average = copy.deepcopy(model).eval()
    optimizer = adamw(model.parameters(), config.learning_rate, weight_decay=0.0)
    started, step = time.process_time(), 0
    model.train()
    while step < config.steps and time.process_time() - started < 60 * config.minutes:
        kg, queries = draw(graphs, config, rng)
        if not queries:
            continue
        done = max(step / config.steps, (time.process_time() - started) / (60 * config.minutes))
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * min((step + 1) / config.warm_up, 1.0) * max(1 - done, 0.05)
        loss = query_loss(queries, TrainedSteps(model, kg, options))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 1 - min(config.average, step / (step + 10)))
        if log is not None:
            log(step, float(loss.detach()), average)
    model.eval()
    return average
