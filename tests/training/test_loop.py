from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gamma_kg.errors import ConfigError
from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.nn.checkpoint import load_checkpoint
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.config import Phase, TrainConfig
from gamma_kg.training.curve import curves
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.loop import Trainer
from gamma_kg.training.objective import batch_loss
from gamma_kg.training.run_folder import RunFolder

Start = Callable[..., Trainer]


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def start(training_graph: TrainingGraph, tmp_path: Path) -> Start:
    def build(config: TrainConfig, name: str = "run", **options: Any) -> Trainer:
        return Trainer(config, [training_graph], RunFolder(tmp_path / name), **options)

    return build


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    found = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    return found | {f"average.{name}": value for name, value in trainer.average.state_dict().items()}


class StopAfter:
    """Kills the run as kill -9 would: no handler runs, nothing is saved."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, record: Any) -> None:
        if record["kind"] == "train" and record["step"] == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("killed_at", [4, 6])
def test_a_killed_and_resumed_run_gives_the_same_weights_bit_for_bit(
    start: Start, tiny_config: TrainConfig, workers: int, killed_at: int
) -> None:
    small = Phase(sampler="subgraph", batch_size=4, batches_per_draw=3, negatives="all", entities=(10, 20))
    phases = (*tiny_config.phases, small, Phase(batch_size=4, negatives=6))
    config = tiny_config.with_options(
        phases=phases, workers=workers, checkpoint_steps=3, accumulate=2, warmup_steps=3, decay="cosine", log_steps=2
    )
    whole = start(config, "whole")
    whole.run()
    killed = start(config, "killed", watch=[StopAfter(killed_at)])
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    resumed = start(config, "killed")
    resumed.run(resume=True)
    assert resumed.count.step == whole.count.step == 8
    expected = weights(whole)
    for name, tensor in weights(resumed).items():
        assert torch.equal(tensor, expected[name]), name
    records = [(record["step"], record["loss"]) for record in whole.folder.records("train")]
    assert [(record["step"], record["loss"]) for record in resumed.folder.records("train")] == records


def test_training_lowers_the_loss(start: Start, tiny_config: TrainConfig) -> None:
    trainer = start(tiny_config.with_options(steps=150))
    trainer.run()
    losses = [record["loss"] for record in trainer.folder.records("train")]
    assert sum(losses[-60:]) / 60 < 0.85 * sum(losses[:10]) / 10


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_with_a_checkpoint_from_which_it_goes_on(
    start: Start, tiny_config: TrainConfig, signal_number: int
) -> None:
    def send(record: Any) -> None:
        if record["kind"] == "train" and record["step"] == 3:
            os.kill(os.getpid(), signal_number)

    before = signal.getsignal(signal_number)
    trainer = start(tiny_config, watch=[send])
    outcome = trainer.run()
    assert outcome.status == "stopped"
    assert trainer.folder.load_state()["counters"]["step"] == 3
    assert signal.getsignal(signal_number) is before
    resumed = start(tiny_config)
    assert resumed.run(resume=True).status == "finished"
    assert resumed.count.step == 8


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_batch_and_last_good_state(
    start: Start, tiny_config: TrainConfig
) -> None:
    def poison(record: Any) -> None:
        if record["kind"] == "train" and record["step"] == 5:
            with torch.no_grad():
                trainer.model.score.out.bias.fill_(math.nan)

    trainer = start(tiny_config.with_options(checkpoint_steps=2), watch=[poison])
    with pytest.raises(TrainingError, match=r"step 5.*diverged.*broken-batch-5\.pt"):
        trainer.run()
    state = trainer.folder.load_state()
    assert state["counters"]["step"] == 4
    assert all(tensor.isfinite().all() for tensor in state["model"].values())
    batch = torch.load(trainer.folder.path / "broken-batch-5.pt", weights_only=True)
    assert batch["source_B"].shape == (4,)
    assert "edges.neighbour" in batch


def test_the_last_checkpoints_and_the_best_one_are_kept(start: Start, tiny_config: TrainConfig) -> None:
    values = iter([0.1, 0.5, 0.2, 0.3, 0.3])
    config = tiny_config.with_options(checkpoint_steps=2, validate_steps=2, keep=2)
    trainer = start(config, validate=lambda model: {"families": next(values)})
    trainer.run()
    names = [path.name for path in trainer.folder.checkpoints()]
    assert names == [
        "step-0000006.ema.safetensors",
        "step-0000006.safetensors",
        "step-0000008.ema.safetensors",
        "step-0000008.safetensors",
    ]
    best = load_checkpoint(trainer.folder.best_path)
    assert best.provenance["step"] == 2
    assert best.provenance["validation_mrr"] == {"families": 0.5}
    assert best.provenance["train_config"]["seed"] == 0


def test_early_stopping_waits_for_its_patience(start: Start, tiny_config: TrainConfig) -> None:
    values = iter([0.1, 0.5, 0.2, 0.3, 0.4])
    config = tiny_config.with_options(validate_steps=1, patience=2)
    outcome = start(config, validate=lambda model: {"families": next(values)}).run()
    assert outcome.status == "converged"
    assert [record["step"] for record in outcome.validations] == [0, 1, 2, 3]


def test_validation_sees_the_average_in_eval_mode_and_training_goes_on_in_train_mode(
    start: Start, tiny_config: TrainConfig
) -> None:
    seen: list[bool] = []

    def validate(model: GammaModel) -> dict[str, float]:
        seen.append(model.training or model is trainer.model)
        return {"families": 0.0}

    trainer = start(tiny_config.with_options(validate_steps=4), validate=validate)
    trainer.run()
    assert seen == [False, False, False]
    assert trainer.model.training


def test_the_average_lies_between_start_and_end(start: Start, tiny_config: TrainConfig) -> None:
    trainer = start(tiny_config)
    first = trainer.model.score.out.weight.clone()
    trainer.run()
    moved = (trainer.model.score.out.weight - first).norm()
    assert 0 < (trainer.average.score.out.weight - first).norm() < moved


def test_the_average_forgets_the_start_within_a_few_steps(start: Start, tiny_config: TrainConfig) -> None:
    """With a decay of .999 from the first step on it would remember the random start for a thousand."""
    trainer = start(tiny_config.with_options(steps=4, ema_decay=0.999))
    first = trainer.model.score.out.weight.clone()
    trainer.run()
    moved = (trainer.model.score.out.weight - first).norm()
    assert (trainer.average.score.out.weight - first).norm() > 0.5 * moved


def test_without_average_only_the_raw_weights_are_saved(start: Start, tiny_config: TrainConfig) -> None:
    trainer = start(tiny_config.with_options(ema_decay=0))
    trainer.run()
    assert [path.name for path in trainer.folder.checkpoints()] == ["step-0000008.safetensors"]


def test_a_used_folder_is_not_overwritten_and_an_empty_one_not_resumed(start: Start, tiny_config: TrainConfig) -> None:
    start(tiny_config).run()
    with pytest.raises(TrainingError, match="--resume"):
        start(tiny_config).run()
    with pytest.raises(TrainingError, match="nothing to resume"):
        start(tiny_config, "other").run(resume=True)


def test_a_budget_in_minutes_ends_by_the_clock(start: Start, tiny_config: TrainConfig) -> None:
    trainer = start(tiny_config.with_options(steps=None, minutes=0.01))
    trainer.run()
    assert trainer.count.step >= 1
    assert trainer.count.seconds >= 0.6


@pytest.mark.parametrize(
    "change", [{"loss": "bce"}, {"seed": 5}, {"model": "ultra"}, {"graphs": ("others",)}, {"model_options": {"dim": 4}}]
)
def test_a_run_does_not_go_on_as_another_run(start: Start, tiny_config: TrainConfig, change: dict[str, Any]) -> None:
    start(tiny_config, "run").run()
    folder = start(tiny_config, "run").folder
    written = (folder.path / "config.json").read_text()
    longer = tiny_config.with_options(steps=12)
    with pytest.raises(TrainingError, match=f"begun with {next(iter(change))}"):
        start(longer.with_options(**change), "run").run(resume=True)
    assert (folder.path / "config.json").read_text() == written, "nothing was overwritten"
    assert start(longer, "run").run(resume=True).counters.step == 12


def test_a_run_does_not_go_on_with_other_facts(start: Start, tiny_config: TrainConfig) -> None:
    begun = {"data": {"families": {"sha256": "1", "triples": 3}}}
    start(tiny_config, "run", provenance=begun).run()
    with pytest.raises(TrainingError, match="begun with other facts: families"):
        start(tiny_config, "run", provenance={"data": {"families": {"sha256": "2"}}}).run(resume=True)


def test_frozen_parts_keep_their_weights_and_the_rest_learns(start: Start, tiny_config: TrainConfig) -> None:
    before = start(tiny_config, "before").model.state_dict()
    trainer = start(tiny_config.with_options(frozen=("branches", "relation_encoder"), steps=2), "frozen")
    trainer.run()
    changed = {
        name.partition(".")[0] for name, value in trainer.model.state_dict().items() if not value.equal(before[name])
    }
    assert changed == {"attention", "score"} if trainer.model.attention is not None else {"score"}


def test_a_frozen_encoder_gives_the_states_and_gradients_that_it_would_give_as_a_constant(
    start: Start, tiny_config: TrainConfig
) -> None:
    free, kept = (
        start(tiny_config, "free"),
        start(tiny_config.with_options(frozen=("branches", "relation_encoder")), "kept"),
    )
    for trainer in (free, kept):
        torch.manual_seed(0)  # dropout
        batch = trainer.drawer.draw(0, 0)[0]
        batch_loss(trainer.model, batch, tiny_config)[0].backward()
    for name, weight in kept.model.named_parameters():
        expected = dict(free.model.named_parameters())[name].grad
        if name.startswith(("branches", "relation_encoder")):
            assert weight.grad is None
        else:
            torch.testing.assert_close(weight.grad, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("frozen", [("branch",), ("relation_encoder", "branches", "attention", "score")])
def test_freezing_what_is_not_there_or_everything_is_refused(
    start: Start, tiny_config: TrainConfig, frozen: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError, match="frozen"):
        start(tiny_config.with_options(frozen=frozen))


def test_a_state_with_a_flipped_bit_or_of_another_kind_is_refused(start: Start, tiny_config: TrainConfig) -> None:
    """torch.load would take over weights of which one bit differs."""
    start(tiny_config).run()
    path = start(tiny_config).folder.state_path
    sound = path.read_bytes()
    state = torch.load(path, weights_only=True)
    at = sound.index(next(iter(state["model"].values())).numpy().tobytes())
    path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
    with pytest.raises(TrainingError, match=r"can't be read.*damaged"):
        start(tiny_config).run(resume=True)
    # An archive that is sound in itself, but not the one that the checksum behind it was made of.
    torch.save({**state, "counters": {"step": 2}}, path)
    path.write_bytes(path.read_bytes() + sound[-71:])
    with pytest.raises(TrainingError, match=r"can't be read.*damaged"):
        start(tiny_config).run(resume=True)
    torch.save({**state, "counters": {"stepp": 3}}, path)  # as earlier versions wrote it: without a checksum behind it
    with pytest.raises(TrainingError, match="is not the state of this run"):
        start(tiny_config).run(resume=True)
    path.write_bytes(sound)
    (path.parent / "config.json").write_text('{"steps": ')
    with pytest.raises(TrainingError, match="can't be read as the config of a run"):
        start(tiny_config).run(resume=True)


def test_lines_of_a_log_that_are_no_records_are_passed_over_and_damaged_ones_told(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.log_path.write_bytes(b'\xff\xfe\n[1]\n{"kind": "train", "step": 1}\n{"kind"\n')
    assert [record["step"] for record in folder.records()] == [1]
    with pytest.raises(TrainingError, match="is damaged"):
        curves(folder)


def test_a_state_that_can_not_be_written_says_why_and_leaves_the_last_one(tmp_path: Path) -> None:
    """As on a full disk, where torch by itself says "iostream error" or "unexpected pos"."""
    resource = pytest.importorskip("resource", reason="this system has no limits of files")
    folder, sizes = RunFolder(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    folder.save_state({"w": torch.arange(3)})
    for limit in (0, 500, 4000, 60_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, sizes[1]))
        try:
            with pytest.raises(TrainingError, match=r"can't write .*state\.pt: File too large"):
                folder.save_state({"w": torch.randn(20_000)})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, sizes)
    assert folder.load_state()["w"].tolist() == [0, 1, 2] and [path.name for path in tmp_path.iterdir()] == ["state.pt"]


def test_a_run_stopped_in_its_first_validation_does_not_tell_it_twice(start: Start, tiny_config: TrainConfig) -> None:
    stops = [False, True]  # the last one first

    def validate(model: GammaModel) -> dict[str, float]:
        if stops.pop():
            signal.raise_signal(signal.SIGINT)
        return {"own": 0.5}

    stopped = start(tiny_config, validate=validate)
    outcome = stopped.run()
    assert (outcome.status, outcome.signals, outcome.counters.step) == ("stopped", [signal.SIGINT], 0)
    start(tiny_config, validate=validate).run(resume=True)
    assert [record["step"] for record in stopped.folder.records("validation")] == [0, tiny_config.steps]
