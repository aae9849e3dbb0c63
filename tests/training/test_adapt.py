from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from gamma_kg import KnowledgeGraph
from gamma_kg.errors import CheckpointError, DataError
from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.home import OtherGraphWarning
from gamma_kg.training import adapt as module
from gamma_kg.training.adapt import adapt, adapt_config, hide_twice
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.judgement import Verdict
from gamma_kg.training.watchers import train_line

SMALL = GammaConfig(dim=8, num_layers=3, attention_dim=8, relation_graph="pairs")


@pytest.fixture
def kg(training_graph: TrainingGraph) -> KnowledgeGraph:
    names = [f"p{i}" for i in range(training_graph.num_entities)]
    return KnowledgeGraph(training_graph.triples, names, ["parent_of", "child_of", "grandparent_of"])


@pytest.fixture
def config(kg: KnowledgeGraph) -> TrainConfig:
    phase = adapt_config(100, 1).phases[0].with_options(batch_size=8, negatives="all")
    return adapt_config(100, 1).with_options(
        steps=60, minutes=None, validate_minutes=0, validate_steps=20, learning_rate=5e-3, ema_decay=0.9,
        warmup_steps=0, phases=[phase], device="cpu",
    )  # fmt: skip


def test_facts_are_hidden_twice_and_none_is_in_two_parts(kg: KnowledgeGraph) -> None:
    parts = hide_twice(kg.triples.numpy(), kg.num_entities, kg.num_relations, np.random.default_rng(0))
    sets = [{tuple(row) for row in part.tolist()} for part in (parts.train, parts.watched, parts.judged)]
    assert sum(map(len, sets)) == len(set.union(*sets)) < kg.num_triples
    assert len(sets[1]) == len(sets[2]) == 20


def test_half_of_the_hidden_facts_keep_their_twins_and_the_others_are_alone() -> None:
    """A fact is found by its twin; what is missing may have none."""
    ring = [(5 * number + i, 0, 5 * number + (i + 1) % 5) for number in range(100) for i in range(5)]
    inverse = [(t, 1, h) for h, _, t in ring]
    for facts, share in (([*ring, *inverse], 0.5), ([*ring, *inverse[:100]], 0.2), (ring, 0.0)):
        parts = hide_twice(np.array(facts), 500, 2, np.random.default_rng(0))
        for hidden in (parts.watched, parts.judged):
            seen = {frozenset(row) for row in parts.train[:, [0, 2]].tolist()}
            is_beside = [frozenset(row) in seen for row in hidden[:, [0, 2]].tolist()]
            assert np.mean(is_beside) == pytest.approx(share, abs=0.06)


def test_a_link_that_is_stored_twice_is_no_way_around_itself() -> None:
    """As in hm-1k: nearly all facts have their inverse in the graph, and no other path."""
    tree = [(child // 2, 0, child) for child in range(1, 800)]
    with pytest.raises(DataError, match="only 0 such facts"):
        hide_twice(np.array([*tree, *((t, 1, h) for h, _, t in tree)]), 800, 2, np.random.default_rng(0))


def test_a_graph_too_small_to_hide_facts_says_so() -> None:
    with pytest.raises(DataError, match="3 facts is too small"):
        hide_twice(np.array([(0, 0, 1), (1, 0, 2), (2, 0, 0)]), 3, 1, np.random.default_rng(0))


def test_no_fact_is_hidden_that_was_the_only_link_between_its_ends() -> None:
    ring = [(i, 0, (i + 1) % 5) for i in range(5)]
    rings = [(5 * number + h, r, 5 * number + t) for number in range(100) for h, r, t in ring]
    tree = [(5 * number, 0, 5 * number + 5) for number in range(99)]  # bridges from ring to ring
    parts = hide_twice(np.array([*rings, *tree]), 500, 1, np.random.default_rng(0))
    hidden = {tuple(row) for part in (parts.watched, parts.judged) for row in part.tolist()}
    assert len(hidden) == 90 and hidden <= {*rings}


def test_a_graph_whose_facts_are_mostly_the_only_links_is_left_alone() -> None:
    rings = [(5 * number + i, 0, 5 * number + (i + 1) % 5) for number in range(100) for i in range(5)]
    leaves = [(i % 500, 0, 500 + i) for i in range(1600)]
    with pytest.raises(DataError, match=r"too sparse to adapt to: .* only 24% .* Use the model as it is"):
        hide_twice(np.array([*rings, *leaves]), 2100, 1, np.random.default_rng(0))
    assert len(hide_twice(np.array([*rings, *leaves[:1400]]), 2100, 1, np.random.default_rng(0)).judged) == 125


def test_a_graph_of_many_entities_is_judged_by_fewer_facts_for_ranking_them_costs_more() -> None:
    ring = [(5 * number + i, 0, 5 * number + (i + 1) % 5) for number in range(2000) for i in range(5)]
    few, many = (hide_twice(np.array(ring), entities, 1, np.random.default_rng(0)) for entities in (10_000, 100_000))
    assert (len(few.watched), len(few.judged)) == (100, 300)
    assert (len(many.watched), len(many.judged)) == (20, 30)


def test_large_graphs_are_learnt_in_pieces_and_looking_leaves_time_to_train() -> None:
    small, large = adapt_config(3000, 5), adapt_config(3001, 5)
    assert (small.phases[0].sampler, large.phases[0].sampler) == ("full", "subgraph")
    assert [adapt_config(100, minutes).validate_minutes for minutes in (0.2, 1, 5, 60)] == [0.1, 0.5, 0.625, 7.5]
    assert adapt_config(100, 5, steps=60).validate_steps == 30


def test_an_ensemble_is_not_adapted(kg: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="name one of its models"):
        adapt(Gamma.from_pretrained("ensemble"), kg, steps=1, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_that_learns_the_graph_is_kept_and_remembers_it(
    kg: KnowledgeGraph, config: TrainConfig, tmp_path: Path
) -> None:
    gamma = Gamma.from_config(SMALL)
    before = {name: tensor.clone() for name, tensor in gamma.model.state_dict().items()}
    done = adapt(gamma, kg, folder=tmp_path / "run", config=config, name="families")
    assert done.verdict.is_better and done.verdict.gain > 0.1 and done.gamma is not gamma
    assert all(tensor.equal(before[name]) for name, tensor in gamma.model.state_dict().items())
    assert done.path is not None
    loaded = Gamma.from_pretrained(done.path)
    query = torch.tensor([0]), torch.tensor([0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.scores(kg, *query)
    other = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")])
    with pytest.warns(OtherGraphWarning, match="adapted to another graph .families: 60 entities"):
        loaded.scores(other, *query)
    grown = KnowledgeGraph.from_triples(
        [*((kg.entities[h], kg.relations[r], kg.entities[t]) for h, r, t in kg.triples.tolist()), ("x", "new", "p1")]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.scores(grown, *query)


def test_old_weights_stay_unless_the_gain_is_beyond_chance(
    kg: KnowledgeGraph, config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "judge", lambda *_: Verdict(0.3, 0.4, -0.01, 0.2, 20))
    gamma = Gamma.from_config(SMALL)
    done = gamma.adapt(kg, folder=tmp_path / "run", config=config.with_options(steps=2))
    assert done.gamma is gamma and done.path is None
    assert not (tmp_path / "run" / "adapted.safetensors").exists()
    assert "old weights stay" in str(done)


def test_an_adaptation_goes_on_where_it_stopped(kg: KnowledgeGraph, config: TrainConfig, tmp_path: Path) -> None:
    gamma = Gamma.from_config(SMALL)
    adapt(gamma, kg, folder=tmp_path / "run", config=config.with_options(steps=10))
    done = adapt(gamma, kg, folder=tmp_path / "run", config=config.with_options(steps=20), resume=True)
    assert done.steps == 20


def test_where_no_look_found_better_weights_the_last_ones_are_judged(
    kg: KnowledgeGraph, config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at the start is the best; what was learnt is still put before the facts that judge."""
    looks = iter((0.9, 0.1, 0.1, 0.1, 0.1))
    monkeypatch.setattr(module, "validator", lambda *_: lambda _: {"own": next(looks)})
    gamma = Gamma.from_config(SMALL)
    done = adapt(gamma, kg, folder=tmp_path / "run", config=config)
    assert done.verdict.is_better and done.gamma is not gamma


def test_the_first_line_of_a_run_says_how_long_it_has_to_go() -> None:
    """Nothing has happened since it, so it goes by the whole run so far; later lines by what came since."""
    first = {"step": 1, "loss": 1.0, "seconds": 15.0, "samples": 16, "waited": 0.0, "progress": 0.25}
    assert "25.0% done, 0:45 to go" in train_line(first, first)
    second = {**first, "step": 11, "seconds": 20.0, "progress": 0.5}
    assert "2.00 steps/s" in train_line(second, first) and "50.0% done, 0:10 to go" in train_line(second, first)
