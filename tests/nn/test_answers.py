import math

import pytest
import torch

from gamma_kg.nn import local_answers
from gamma_kg.nn.answers import Answers, WholeAnswers, log_totals
from gamma_kg.nn.local_answers import Background, LocalAnswers

N, K = 60, 2


def near_and_whole(seed: int, is_sampled: bool, inside: int = 20) -> tuple[LocalAnswers, WholeAnswers]:
    """Answers from a neighbourhood, and the same as a row of all entities; some scores are equal."""
    draw = torch.Generator().manual_seed(seed)

    def scores(count: int) -> torch.Tensor:
        return torch.randint(-8, 8, (count,), generator=draw) / 2

    entity_M = torch.randperm(N, generator=draw)[:inside]
    near, near_weights = scores(inside), torch.rand(inside, K, generator=draw)
    met = torch.randperm(N, generator=draw)[: 25 if is_sampled else N].sort().values
    far, far_weights = scores(len(met)), torch.rand(len(met), K, generator=draw)
    background = Background(N, met if is_sampled else None, far, far_weights, -1.5 if is_sampled else -math.inf)
    score_N, weight_NK = torch.full((N,), -1.5), torch.full((N, K), 1 / K)
    score_N[met], weight_NK[met] = far, far_weights
    score_N[entity_M], weight_NK[entity_M] = near, near_weights
    return LocalAnswers(500, entity_M, near, near_weights, background), WholeAnswers(score_N, weight_NK)


@pytest.mark.parametrize("sorted_entities", [4, 1 << 14])
@pytest.mark.parametrize("is_sampled", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_local_answers_say_what_a_row_of_all_entities_would_say(
    seed: int, is_sampled: bool, sorted_entities: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_answers, "SORTED", sorted_entities)
    near, whole = near_and_whole(seed, is_sampled)
    known = torch.tensor([3, 17, 40, 41])
    everyone = torch.arange(N)
    assert torch.equal(near.dense(), whole.dense())
    assert torch.equal(near.at(everyone), whole.at(everyone))
    assert torch.equal(near.weights(everyone), whole.weights(everyone))  # type: ignore[arg-type]
    for without in (known, known[:0]):
        assert near.log_total(without) == pytest.approx(whole.log_total(without), abs=1e-9)
        for entity in (0, 5, 30, 59):
            assert near.rank(entity, without) == whole.rank(entity, without)
        for count in (1, 5, 12):
            check_best(near, whole, count, without)


def check_best(near: Answers, whole: Answers, count: int, without: torch.Tensor) -> None:
    entity, score = near.best(count, without)
    # Entities that a sample has not met can't be told apart and are never named.
    assert torch.equal(score, whole.at(entity)) and len(entity.unique()) == count
    assert not torch.isin(entity, without).any()
    assert torch.equal(score, whole.best(count, without)[1])
    ranked, ranked_score, log_total = near.ranked(count, without)
    assert torch.equal(ranked, entity) and torch.equal(ranked_score, score) and log_total == near.log_total(without)


def test_a_neighbourhood_may_hold_everything_or_nothing() -> None:
    for inside in (0, N):
        near, whole = near_and_whole(1, False, inside)
        nobody = torch.empty(0, dtype=torch.long)
        assert near.log_total(nobody) == pytest.approx(whole.log_total(nobody), abs=1e-9)
        assert torch.equal(near.best(N + 5, nobody)[1], whole.best(N + 5, nobody)[1])


def test_no_candidate_is_left_where_all_are_known() -> None:
    near, whole = near_and_whole(2, False)
    for answers in (near, whole):
        entity, score = answers.best(3, torch.arange(N))
        assert len(entity) == len(score) == 0
        assert answers.log_total(torch.arange(N)) == -math.inf


def test_answers_say_what_they_were_computed_on() -> None:
    near, whole = near_and_whole(0, True)
    assert (near.local, near.is_sampled, whole.local, whole.is_sampled) == (500, True, None, False)


def test_totals_have_the_same_bits_for_a_row_alone_and_among_others() -> None:
    score_QN = torch.randn(9, 1003, generator=torch.Generator().manual_seed(0)) * 4
    score_QN[3, ::2], score_QN[5] = -math.inf, -math.inf
    together = log_totals(score_QN)
    assert together == [log_totals(row[None])[0] for row in score_QN]
    assert together == pytest.approx(score_QN.double().logsumexp(1).tolist(), abs=1e-12)
    assert together[5] == -math.inf and log_totals(torch.empty(1, 0)) == [-math.inf]
