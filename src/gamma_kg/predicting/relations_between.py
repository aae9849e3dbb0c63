"""Which relations hold between two entities: the one question whose answers are relations.

Each relation is asked both ways, (head, r, ?) and (?, r, tail), and the mean of the two scores ranks it: clearly better
than one way alone (MRR .78 against .69 on 60 facts of nl-0 with the public ULTRA weights). Evaluation does the same
(`evaluation/relations.py`).

R relations, A of them asked, K branches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.nn.answers import WholeAnswers
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.candidates import best_candidates
from gamma_kg.predicting.pair_scores import PairScores
from gamma_kg.predicting.prediction import Prediction
from gamma_kg.predicting.score_batch import ranked_of
from gamma_kg.rules import rules_of

if TYPE_CHECKING:
    from gamma_kg.predicting.predictor import Predictor


def relations_between(
    predictor: Predictor, kg: KnowledgeGraph, head: str, tail: str, how: AnswerOptions
) -> list[Prediction]:
    """The relations that may hold from `head` to `tail`, best first."""
    num, branch_names = kg.num_relations, predictor.branch_names
    source, answer = kg.entity_id(head), kg.entity_id(tail)
    score_R = torch.full((num,), -torch.inf)
    weight_RK = torch.full((num, len(branch_names)), 1 / max(len(branch_names), 1))
    # What contradicts the rules is not asked: that may be most of what there is.
    rules = rules_of(kg) if how.rules else None
    relation_A = torch.tensor([r for r in range(num) if rules is None or rules.why_not(source, r, answer) is None])
    pair = PairScores.of_nothing()
    if len(relation_A):
        pair = predictor.pair_scores(kg, source, relation_A, answer, how)
        score_R[relation_A] = pair.score_A
        if pair.weight_AK is not None:
            weight_RK[relation_A] = pair.weight_AK
    is_known_R = torch.tensor([bool((kg.answers(source, r) == answer).any()) for r in range(num)])
    known = is_known_R.nonzero()[:, 0]
    without, held = (known[:0], known) if how.include_known else (known, None)
    whole = WholeAnswers(score_R, weight_RK)
    found = best_candidates(ranked_of(whole, how.top_k, without), whole, branch_names, without, held)
    if found and predictor.calibration(kg, how.local, how.rules) is not None:
        facts = np.array([(source, one.id, answer) for one in found])
        likely = predictor.fact_probabilities(kg, facts, how).tolist()
        found = [replace(one, probability=own) for one, own in zip(found, likely, strict=True)]
    return [
        replace(one, local=pair.local, is_sampled=pair.is_sampled).named(
            (head, None, tail), kg.relations[one.id], bool(is_known_R[one.id])
        )
        for one in found
    ]
