"""Rank the test triples of a split with a predictor, a batch of distinct queries at a time.

B queries of a batch, N entities, Q ranked answers in all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from gamma_kg.data.benchmark import Split
from gamma_kg.errors import NonFiniteScoreError
from gamma_kg.evaluation.plan import QueryBatch, QueryPlan
from gamma_kg.evaluation.ranking import RivalCounts, count_rivals
from gamma_kg.evaluation.split_graph import graph_of
from gamma_kg.graph.inverse import direct_of, is_inverse
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.predicting.answer_options import AS_PUBLISHED, AnswerOptions
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.rules import rules_of


class SplitRanker:
    """A predictor at work on one split: holds the graph and the filter, ranks batch by batch."""

    def __init__(
        self,
        predictor: Predictor,
        split: Split,
        how: AnswerOptions = AS_PUBLISHED,
    ) -> None:
        self.predictor, self.split, self.how = predictor, split, how
        self.kg = graph_of(split)
        known = np.concatenate((split.known, split.queries))
        self.known = KnownAnswers.build(known, split.num_entities, split.num_relations)

    def rank(self, batch: QueryBatch, counts: RivalCounts) -> None:
        """Write the rival counts of the batch's answers into `counts`."""
        source_B, relation_B = torch.from_numpy(batch.source), torch.from_numpy(batch.relation)
        scores_BN = self.predictor.scores(self.kg, source_B, relation_B, memory=self.how.memory, local=self.how.local)
        finite_B = scores_BN.isfinite().all(dim=1)
        if not finite_B.all():
            row = int((~finite_B).nonzero()[0])
            raise NonFiniteScoreError(f"the scores for {self._describe(batch, row)} are not finite (NaN or infinity)")
        if self.how.rules:
            # What `predict` would not show comes after everything that it shows.
            for row, query in enumerate(zip(batch.source.tolist(), batch.relation.tolist(), strict=True)):
                scores_BN[row, torch.from_numpy(rules_of(self.kg).blocked(*query))] = float(scores_BN[row].min()) - 1
        known_row, known = self.known.of(batch.source, batch.relation)
        arrays = (torch.from_numpy(a) for a in (batch.row, batch.answer, known_row, known))
        counts.put(batch.position, count_rivals(scores_BN, *arrays))

    def _describe(self, batch: QueryBatch, row: int) -> str:
        source, relation = int(batch.source[row]), int(batch.relation[row])
        name, direct = self.split.entities[source], self.split.relations[direct_of(relation, self.split.num_relations)]
        return f"(?, {direct}, {name})" if is_inverse(relation, self.split.num_relations) else f"({name}, {direct}, ?)"


def rank_split(
    predictor: Predictor,
    split: Split,
    plan: QueryPlan | None = None,
    how: AnswerOptions = AS_PUBLISHED,
    *,
    on_batch: Callable[[int], None] | None = None,
) -> RivalCounts:
    """Rank everything that is planned, in this process. `on_batch` hears how many answers each batch ranked."""
    plan = plan or QueryPlan.build(split)
    ranker, counts = SplitRanker(predictor, split, how), RivalCounts.empty(len(plan))
    for batch in plan.batches():
        ranker.rank(batch, counts)
        if on_batch is not None:
            on_batch(len(batch.position))
    return counts
