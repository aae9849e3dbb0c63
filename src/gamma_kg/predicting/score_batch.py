"""What scoring gives back: the scores of some distinct queries, and the best candidates of each.

B queries of a batch, N entities, K branches, Q queries that are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.nn.answers import Answers, WholeAnswers, log_totals
from gamma_kg.nn.model import Scores


class Ranked(NamedTuple):
    """The best candidates of a query, best first."""

    entity: list[int]
    score: list[float]
    weight: list[list[float]] | None  # of the branches; None where the model has none
    log_total: float  # log Σ exp(score) over all candidates


def ranked_of(answers: Answers, count: int, without: Tensor) -> Ranked:
    """The best candidates of one query, less the entities `without`."""
    entity, score, log_total = answers.ranked(count, without)
    weight_nK = answers.weights(entity)
    return Ranked(entity.tolist(), score.tolist(), None if weight_nK is None else weight_nK.tolist(), log_total)


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Scores of some distinct queries, and which of the queries asked for they answer."""

    query: Tensor  # positions in the caller's list of queries
    row: Tensor  # for each of these, its row in the scores
    found: Scores | Sequence[Answers]  # dense from a whole graph, else an answer per row

    @cached_property
    def scores(self) -> Scores:
        """Rows with all entities. Those of local answers are made when asked for: `answers` costs less."""
        if isinstance(self.found, Scores):
            return self.found
        everyone = torch.arange(self.found[0].num_entities)
        weights = [answers.weights(everyone) for answers in self.found]
        known = [weight_NK for weight_NK in weights if weight_NK is not None]
        return Scores(self.dense(), torch.stack(known) if len(known) == len(weights) else None)

    def dense(self) -> Tensor:
        """The scores of all entities without the branch weights, a row for each distinct query."""
        if isinstance(self.found, Scores):
            return self.found.score_BC
        return torch.stack([answers.dense() for answers in self.found])

    def answers(self, row: int) -> Answers:
        """What is said of all candidates of one of the queries, on the CPU."""
        if not isinstance(self.found, Scores):
            return self.found[row]
        score_BN, weight_BNK = self.found
        return WholeAnswers(score_BN[row].cpu(), None if weight_BNK is None else weight_BNK[row].cpu())

    def ranked(self, rows: Sequence[int], count: int, without: Sequence[Tensor]) -> list[Ranked]:
        """The best candidates of some queries, less the entities `without` of each."""
        if isinstance(self.found, Scores):
            return _ranked_whole(self.found, rows, count, without)
        return [ranked_of(self.found[row], count, own) for row, own in zip(rows, without, strict=True)]


def _ranked_whole(scores: Scores, rows: Sequence[int], count: int, without: Sequence[Tensor]) -> list[Ranked]:
    """All queries in a few passes, each of which treats a row as if it were alone."""
    row_Q = torch.tensor(rows, dtype=torch.long)
    score_QN = scores.score_BC[row_Q].cpu()
    number = torch.repeat_interleave(torch.arange(len(rows)), torch.tensor([len(ids) for ids in without]))
    score_QN[number, torch.cat([*without, row_Q[:0]])] = -torch.inf
    best_Qn, entity_Qn = score_QN.topk(min(count, score_QN.shape[1]), dim=1)
    weight = None if scores.weight_BCK is None else scores.weight_BCK[row_Q[:, None], entity_Qn].cpu().tolist()
    found = []
    for q, (entity, score, log_total) in enumerate(
        zip(entity_Qn.tolist(), best_Qn.tolist(), log_totals(score_QN), strict=True)
    ):
        are_candidates = score.index(-math.inf) if score and score[-1] == -math.inf else len(score)
        own = None if weight is None else weight[q][:are_candidates]
        found.append(Ranked(entity[:are_candidates], score[:are_candidates], own, log_total))
    return found
