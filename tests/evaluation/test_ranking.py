import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg.evaluation.metrics import adjusted_mean_rank_index, bootstrap_interval, rank_metrics
from gamma_kg.evaluation.ranking import count_rivals
from gamma_kg.graph.known import KnownAnswers


def test_hand_worked_ranks_with_a_tie_and_a_filtered_entity():
    scores = torch.tensor([[5.0, 3.0, 3.0, 1.0, 9.0]])
    # Entity 4 is known true, so only entity 0 is above entity 1 and entity 2 ties with it.
    rivals = count_rivals(scores, *(torch.tensor(x) for x in ([0], [1], [0, 0], [1, 4])))
    assert rivals.published_rank().tolist() == [3]
    assert rivals.fair_rank().tolist() == [2.5]
    assert rivals.total.tolist() == [3]


def test_best_possible_rank_is_one():
    rivals = count_rivals(torch.tensor([[2.0, 1.0]]), *(torch.tensor(x) for x in ([0], [0], [0], [0])))
    assert rivals.published_rank().tolist() == [1] and rivals.fair_rank().tolist() == [1]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_ranks_agree_with_counting_one_by_one(seed):
    rng = np.random.default_rng(seed)
    num_entities, num_relations = 7, 3
    triples = rng.integers(0, [num_entities, num_relations, num_entities], size=(12, 3))
    known = KnownAnswers.build(triples, num_entities, num_relations)
    source, relation = triples[:4, 0], triples[:4, 1]
    scores = rng.integers(0, 4, size=(4, num_entities)).astype(np.float32)
    row, entity = known.of(source, relation)
    answers = triples[:4, 2]
    arrays = (torch.from_numpy(a) for a in (np.arange(4), answers, row, entity))
    rivals = count_rivals(torch.from_numpy(scores), *arrays)
    for i in range(4):
        true = {t for h, r, t in triples.tolist() if (h, r) == (source[i], relation[i])}
        others = [scores[i, e] for e in range(num_entities) if e not in true]
        assert rivals.published_rank()[i] == 1 + sum(o >= scores[i, answers[i]] for o in others)
        assert rivals.total[i] == len(others)


def test_metrics_of_known_ranks():
    metrics = rank_metrics([1, 2, 4, 20])
    assert metrics["mrr"] == pytest.approx((1 + 0.5 + 0.25 + 0.05) / 4)
    assert [metrics[f"hits@{k}"] for k in (1, 3, 10)] == [0.25, 0.5, 0.75]
    assert metrics["mr"] == 6.75


def test_adjusted_index_is_one_for_perfect_and_zero_for_random_ranks():
    assert adjusted_mean_rank_index([1, 1], [10, 20]) == 1
    assert adjusted_mean_rank_index([6, 11], [10, 20]) == 0


def test_bootstrap_interval_contains_the_mean_and_repeats():
    values = [0.1, 0.2, 0.3, 0.4, 0.6]
    low, high = bootstrap_interval(values)
    assert low < np.mean(values) < high
    assert (low, high) == bootstrap_interval(values)
    assert np.isnan(bootstrap_interval([0.3])).all()
