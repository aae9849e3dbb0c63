from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gamma_kg import KnowledgeGraph
from gamma_kg.errors import DataError
from gamma_kg.nn.checkpoint import load_checkpoint
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.weights import load_one
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.finetune import RESULT, finetune_config, load_target, run_finetune, split_off
from gamma_kg.training.run_folder import RunFolder

SMALL = GammaConfig(dim=8, num_layers=3, attention_dim=8)


@pytest.fixture
def start(tmp_path: Path) -> Path:
    path = tmp_path / "start.safetensors"
    Gamma.from_config(SMALL).save(path)
    return path


def test_a_file_of_triples_gives_its_own_validation_triples(family_folder: Path) -> None:
    target = load_target(str(family_folder / "train.txt"))
    train, valid = target.training.graph.triples, target.validation.queries
    together = {tuple(row) for row in np.concatenate((train, valid)).tolist()}
    assert len(valid) == round(0.05 * len(together))
    assert len(train) + len(valid) == len(together) == 149
    assert {tuple(row) for row in target.validation.known.tolist()} == together


def test_a_store_is_as_good_as_the_file_it_was_made_of(family_folder: Path, tmp_path: Path) -> None:
    KnowledgeGraph.from_file(family_folder / "train.txt").save(tmp_path / "family.gamma")
    stored, read = load_target(str(tmp_path / "family.gamma")), load_target(str(family_folder / "train.txt"))
    assert np.array_equal(stored.judged.queries, read.judged.queries)
    assert np.array_equal(stored.training.graph.triples, read.training.graph.triples)


def test_a_second_run_in_a_folder_is_refused(family_folder: Path, start: Path, tmp_path: Path) -> None:
    target, config = load_target(str(family_folder)), finetune_config(load_target(str(family_folder)))
    with RunFolder(tmp_path / "run").locked(), pytest.raises(TrainingError, match="another process"):
        run_finetune(target, load_one(start), config.with_options(steps=1, device="cpu"), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_what_is_split_off_occurs_elsewhere_too() -> None:
    chain = np.array([(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 0), (4, 1, 0)])
    for seed in range(10):
        train, valid = split_off(chain, np.random.default_rng(seed))
        assert len(valid) == 1
        assert (4, 1, 0) not in {tuple(row) for row in valid.tolist()}
        assert len(train) == 4


def test_a_graph_too_small_to_split_says_so() -> None:
    with pytest.raises(DataError, match="2 triples is too small"):
        split_off(np.array([(0, 0, 1), (2, 1, 3)]), np.random.default_rng(0))


def test_finetuning_raises_validation_and_the_result_is_the_best(
    family_folder: Path, start: Path, tmp_path: Path
) -> None:
    target = load_target(str(family_folder))
    phase = finetune_config(target).phases[0].with_options(batch_size=8, negatives="all")
    config = finetune_config(target).with_options(
        steps=60, validate_steps=20, learning_rate=5e-3, ema_decay=0.9, warmup_steps=0, phases=[phase], device="cpu"
    )
    outcome, verdict = run_finetune(target, load_one(start), config, tmp_path / "run")
    mrr = [record["mean"] for record in outcome.validations]
    assert max(mrr) > mrr[0] + 0.1
    best = load_checkpoint(tmp_path / "run" / "best.safetensors")
    assert best.config == SMALL
    assert best.provenance["validation_mrr"]["families"] == pytest.approx(max(mrr))
    assert best.provenance["init"] == {"origin": "untrained, seed 0"}
    assert verdict.is_better and verdict.facts == 7, "half of the fifteen validation triples judge"
    kept = load_checkpoint(tmp_path / "run" / RESULT)
    assert kept.provenance["judged"]["is_better"]
    assert all(tensor.equal(best.weights[name]) for name, tensor in kept.weights.items())


def test_finetuning_that_does_not_help_gives_the_old_weights_back(
    family_folder: Path, start: Path, tmp_path: Path
) -> None:
    target, begun = load_target(str(family_folder)), load_one(start)
    config = finetune_config(target).with_options(steps=1, learning_rate=1e-9, warmup_steps=0, device="cpu")
    _, verdict = run_finetune(target, begun, config, tmp_path / "run")
    assert not verdict.is_better and "old weights stay" in str(verdict)
    kept = load_checkpoint(tmp_path / "run" / RESULT)
    assert all(tensor.equal(begun.weights[name]) for name, tensor in kept.weights.items())


def test_large_graphs_are_trained_on_in_pieces(family_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target(str(family_folder))
    assert finetune_config(target).phases[0].sampler == "full"
    monkeypatch.setattr("gamma_kg.training.recipes.WHOLE_UP_TO", 10)
    assert finetune_config(target).phases[0].sampler == "subgraph"
