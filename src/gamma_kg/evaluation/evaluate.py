"""Rank the test triples of a split with a predictor, a batch of distinct queries at a time.

B queries of a batch, N entities, Q ranked answers in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gamma_kg.data.benchmark import Split
from gamma_kg.errors import NonFiniteScoreError
from gamma_kg.evaluation.plan import QueryBatch, QueryPlan
from gamma_kg.evaluation.ranking import count_rivals
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, is_inverse
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.predicting.answer_options import AS_PUBLISHED, AnswerOptions
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.rules import rules_of

IntArray = NDArray[np.int64]
UNRANKED = -1


@dataclass(frozen=True, eq=False)
class RivalCounts:
    """Per ranked answer: rivals above, tied and in all, int64 (Q,); `UNRANKED` where nothing was computed yet."""

    above: IntArray
    tied: IntArray
    total: IntArray

    @classmethod
    def empty(cls, size: int) -> RivalCounts:
        return cls(*(np.full(size, UNRANKED, dtype=np.int64) for _ in range(3)))

    def take_over(self, others: Iterable[RivalCounts]) -> None:
        """Fill in what others have ranked."""
        for other in others:
            ranked = other.above != UNRANKED
            for mine, theirs in ((self.above, other.above), (self.tied, other.tied), (self.total, other.total)):
                mine[ranked] = theirs[ranked]

    @property
    def is_complete(self) -> bool:
        return bool((self.above != UNRANKED).all())

    def published_rank(self) -> IntArray:
        return 1 + self.above + self.tied

    def fair_rank(self) -> NDArray[np.float64]:
        return 1 + self.above + self.tied / 2


class SplitRanker:
    """A predictor at work on one split: holds the graph and the filter, ranks batch by batch."""

    def __init__(
        self,
        predictor: Predictor,
        split: Split,
        how: AnswerOptions = AS_PUBLISHED,
    ) -> None:
        self.predictor, self.split, self.how = predictor, split, how
        self.kg = KnowledgeGraph(split.graph, split.entities, split.relations, keep_duplicates=True)
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
        rivals = count_rivals(scores_BN, *arrays)
        counts.above[batch.position] = rivals.above.numpy()
        counts.tied[batch.position] = rivals.tied.numpy()
        counts.total[batch.position] = rivals.total.numpy()

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
