"""The one loop: pre-training, fine-tuning and ablations differ by config.

config + graphs → stream of batches → loss → step → log, validate, save; again until the budget is used
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gamma_kg.graph.sampling import RuleWorlds, TrainingGraph
from gamma_kg.kernels.native import retain_freed_memory
from gamma_kg.machine.device import choose_device
from gamma_kg.machine.processes import Processes
from gamma_kg.nn.checkpoint import save_checkpoint
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.batch import Batch
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.draws import BatchStream, Cursor, GraphDrawer
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.freezing import freeze
from gamma_kg.training.objective import Teacher, batch_loss
from gamma_kg.training.optimizer import adamw
from gamma_kg.training.run_folder import RunFolder
from gamma_kg.training.schedule import phase_number, progress, rate_factor
from gamma_kg.training.signals import stop_signals

Validate = Callable[[GammaModel], Mapping[str, float]]
Watch = Callable[[Mapping[str, Any]], None]


@dataclass
class Counters:
    """How far a run is; saved and restored with it."""

    step: int = 0
    batches: int = 0
    samples: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    best_mrr: float = -1.0
    best_step: int = -1
    validations_since_best: int = 0
    validated_at: float = 0.0
    saved_at: float = 0.0
    # Sums over the batches since the last line of the log.
    loss_sum: float = 0.0
    entropy_sum: float = 0.0
    batches_summed: int = 0


@dataclass
class Outcome:
    """How a run ended: "finished", "stopped" by a signal, or "converged" by early stopping."""

    status: str
    counters: Counters
    validations: list[dict[str, Any]] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)  # those that stopped it


class Trainer:
    """A run in progress. `model` are the raw weights, `average` their moving average (the same where it is off)."""

    def __init__(
        self,
        config: TrainConfig,
        graphs: Sequence[TrainingGraph | RuleWorlds],
        folder: RunFolder,
        *,
        model: GammaModel | None = None,
        teachers: Sequence[Teacher] = (),
        validate: Validate | None = None,
        watch: Sequence[Watch] = (),
        processes: Processes | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.config, self.folder, self.processes = config, folder, processes or Processes()
        self.validate, self.watch, self.provenance = validate, watch, dict(provenance or {})
        self.device = choose_device(config.device)
        torch.manual_seed(config.seed)
        self.model = (model or GammaModel(config.gamma_config)).to(self.device).train()
        freeze(self.model, config.frozen)
        for teacher in teachers:
            teacher.model.to(self.device).eval().requires_grad_(False)
        self.teachers = teachers
        self.average = copy.deepcopy(self.model).eval() if config.ema_decay else self.model
        self.wrapped = self.processes.wrap(self.model)
        self.optimizer = adamw(self.model.parameters(), config.learning_rate, config.weight_decay)
        self.drawer = GraphDrawer(
            graphs,
            config.phases,
            config.seed,
            self.processes.number,
            self.model.config.relation_graph,
            with_whole=bool(config.whole_teachers),
        )
        self.count = Counters()
        self.cursor: Cursor | None = None
        self._stop_signals: list[int] = []
        self._clock_start = 0.0
        self._seconds_before = 0.0

    # The run

    def run(self, *, resume: bool = False) -> Outcome:
        """Train until the budget is used, a signal comes or validation no longer improves."""
        with self.folder.locked() if self.processes.is_first else nullcontext():
            return self._run(resume)

    def _run(self, resume: bool) -> Outcome:
        retain_freed_memory()
        state = self.folder.load_state() if resume else None
        if state is not None:
            self._refuse_other_data(state)
        if self.processes.is_first:
            self.folder.start(self.config, resume=resume)
        if state is not None:
            self._restore(state)
        self._clock_start, self._seconds_before = time.monotonic(), self.count.seconds
        stream = self._open_stream()
        outcome = Outcome("finished", self.count)
        try:
            with stop_signals() as self._stop_signals:
                if self.validate is not None and state is None:  # a state that was saved at step 0 has been validated
                    self._validate(outcome)
                while (status := self._status()) is None:
                    self._step(stream)
                    self._after_step(stream, outcome)
            outcome.status, outcome.signals = status, self._stop_signals
            if self.validate is not None and status != "stopped" and self._is_unvalidated():
                self._validate(outcome)
            self._save(stream)
        finally:
            stream.close()
        self._log({"kind": "event", "event": outcome.status})
        return outcome

    def _status(self) -> str | None:
        """Why the run ends now, or None. All processes come to the same answer."""
        self.count.seconds = self._elapsed()
        stopped = self.processes.any(bool(self._stop_signals))
        done = self.processes.from_first(progress(self.config, self.count.step, self.count.seconds))
        self._done = done
        if stopped:
            return "stopped"
        patience = self.config.patience
        if self.processes.from_first(patience and self.count.validations_since_best >= patience):
            return "converged"
        return "finished" if done >= 1 else None

    def _step(self, stream: BatchStream) -> None:
        """One optimiser step from `accumulate` batches."""
        config, count = self.config, self.count
        rate = config.learning_rate * rate_factor(config, count.step, self._done)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        for part in range(config.accumulate):
            batch = stream.next().to(self.device)
            # Dropout follows from the batch's number, so that a resumed run draws the same.
            torch.manual_seed(_mixed_seed(config.seed, self.processes.number, count.batches))
            is_last = part + 1 == config.accumulate
            with nullcontext() if is_last else self.processes.hold_gradients(self.wrapped):
                loss, entropy = batch_loss(self.wrapped, batch, config, self.teachers)
                self._check_finite(loss, batch, "loss")
                (loss / config.accumulate).backward()
            count.loss_sum += loss.item()
            count.entropy_sum += entropy
            count.batches_summed += 1
            count.batches += 1
            count.samples += len(batch) * self.processes.count
        clip = config.clip_norm or torch.inf
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), clip)
        self._check_finite(norm, batch, "gradient")
        self.optimizer.step()
        count.step += 1
        self._update_average()
        count.waited += stream.seconds_waited
        stream.seconds_waited = 0.0
        if count.step % config.log_steps == 0 or count.step == 1:
            self._log_step(batch, float(norm), rate)

    def _after_step(self, stream: BatchStream, outcome: Outcome) -> None:
        config, count = self.config, self.count
        count.seconds = self._elapsed()
        every = config.validate_steps and count.step % config.validate_steps == 0
        timed = config.validate_minutes and count.seconds - count.validated_at >= 60 * config.validate_minutes
        if self.validate is not None and self.processes.from_first(bool(every or timed)):
            self._validate(outcome)
        every = config.checkpoint_steps and count.step % config.checkpoint_steps == 0
        timed = config.checkpoint_minutes and count.seconds - count.saved_at >= 60 * config.checkpoint_minutes
        if self.processes.from_first(bool(every or timed)):
            self._save(stream)

    # Weights

    @torch.no_grad()
    def _update_average(self) -> None:
        if self.average is self.model:
            return
        # In the first steps the average follows closely, else it would remember the random start for long.
        decay = min(self.config.ema_decay, (1 + self.count.step) / (10 + self.count.step))
        for kept, new in zip(self.average.parameters(), self.model.parameters(), strict=True):
            kept.lerp_(new, 1 - decay)

    def _check_finite(self, value: Tensor, batch: Batch, what: str) -> None:
        if not self.processes.any(not bool(value.isfinite())):
            return
        path = self.folder.save_batch(self.count.step, batch.tensors())
        self._log({"kind": "event", "event": f"{what} not finite"})
        raise TrainingError(
            f"the {what} is {float(value.detach())} at step {self.count.step}, so the run has diverged; "
            f"the batch is in {path}, the last good state in {self.folder.state_path}. "
            "Try a lower learning_rate, and --resume"
        )

    def _save(self, stream: BatchStream) -> None:
        """State, raw and averaged checkpoint; the first process writes."""
        self.count.saved_at = self.count.seconds
        cursors = self.processes.gather([*vars(stream.cursor).values()])
        if not self.processes.is_first:
            return
        for average in (False, True) if self.average is not self.model else (False,):
            model = self.average if average else self.model
            path = self.folder.checkpoint_path(self.count.step, average=average)
            save_checkpoint(path, model, self._described(average))
        self.folder.save_state(
            {
                "model": self.model.state_dict(),
                "average": self.average.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "counters": dict(vars(self.count)),
                "cursors": cursors,
                "data": self.provenance.get("data", {}),
            }
        )
        self.folder.drop_old(self.config.keep)

    def _restore(self, state: Mapping[str, Any]) -> None:
        try:
            self._take_over(state)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            told = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            raise TrainingError(
                f"{self.folder.state_path} is not the state of this run, or damaged ({told}); start another run with "
                "another --out, from the last of its checkpoints if you like"
            ) from error
        if self.processes.is_first:
            self.folder.cut_log(self.count.step)

    def _take_over(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        if self.average is not self.model:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.count = Counters(**state["counters"])
        cursors = [Cursor(*values) for values in state["cursors"]]
        # With another number of processes the order of the data changes: all go on behind the draws made so far.
        behind = Cursor(max(cursor.draw for cursor in cursors) + 1, cursors[0].phase)
        self.cursor = cursors[self.processes.number] if self.processes.count == len(cursors) else behind

    def _refuse_other_data(self, state: Mapping[str, Any]) -> None:
        begun, given = state.get("data", {}), self.provenance.get("data", {})
        changed = [name for name in begun if name not in given or begun[name]["sha256"] != given[name]["sha256"]]
        if changed:
            raise TrainingError(
                f"{self.folder.path} was begun with other facts: {', '.join(changed)} changed since. "
                "Put the files back, or start another run with another --out"
            )

    def _described(self, average: bool) -> dict[str, Any]:
        """Provenance of a checkpoint written now."""
        count = self.count
        return {
            **self.provenance,
            "step": count.step,
            "samples": count.samples,
            "minutes": round(count.seconds / 60, 2),
            "weights": "moving average" if average else "last",
            "train_config": self.config.model_dump(mode="json"),
        }

    # Validation and log

    def _validate(self, outcome: Outcome) -> None:
        """Validation MRR of the averaged weights (the first process computes); the best ones are kept."""
        assert self.validate is not None
        count = self.count
        started = time.monotonic()
        mrr = 0.0
        if self.processes.is_first:
            self.average.eval()
            with torch.no_grad():
                by_set = dict(self.validate(self.average))
            self.model.train()
            mrr = sum(by_set.values()) / max(len(by_set), 1)
            record = {"kind": "validation", "mrr": by_set, "mean": mrr, "took": time.monotonic() - started}
            outcome.validations.append({"step": count.step, **record})
        mrr = self.processes.from_first(mrr)
        is_better = mrr > count.best_mrr
        count.validations_since_best = 0 if is_better else count.validations_since_best + 1
        if is_better:
            count.best_mrr, count.best_step = mrr, count.step
            if self.processes.is_first:
                described = {**self._described(self.average is not self.model), "validation_mrr": by_set}
                save_checkpoint(self.folder.best_path, self.average, described)
        count.seconds = count.validated_at = self._elapsed()
        if self.processes.is_first:
            self._log(record)

    def _is_unvalidated(self) -> bool:
        last = [record["step"] for record in self.folder.records("validation")] if self.processes.is_first else []
        return self.processes.from_first(not last or last[-1] != self.count.step)

    def _log_step(self, batch: Batch, norm: float, rate: float) -> None:
        """Loss and entropy are means since the last line; the rest is of this moment."""
        count = self.count
        count.seconds = self._elapsed()
        self._log(
            {
                "kind": "train",
                "loss": count.loss_sum / count.batches_summed,
                "entropy": count.entropy_sum / count.batches_summed,
                "gradient_norm": norm,
                "learning_rate": rate,
                "progress": self._done,
                "samples": count.samples,
                "batches": count.batches,
                "waited": count.waited,
                "entities": batch.edges.num_nodes,
                "edges": batch.edges.num_edges,
                "best_mrr": count.best_mrr,
            }
        )
        count.loss_sum = count.entropy_sum = 0.0
        count.batches_summed = 0

    def _log(self, record: Mapping[str, Any]) -> None:
        if not self.processes.is_first:
            return
        full = {"step": self.count.step, "seconds": round(self.count.seconds, 3), **record}
        full = {key: round(value, 6) if isinstance(value, float) else value for key, value in full.items()}
        self.folder.append(full)
        for watcher in self.watch:
            watcher(full)

    # Clock, stream and signals

    def _elapsed(self) -> float:
        return self._seconds_before + time.monotonic() - self._clock_start

    def _open_stream(self) -> BatchStream:
        config = self.config

        def phase_at(batches: int) -> int:
            return phase_number(config.phases, progress(config, batches / config.accumulate, self._elapsed()))

        return BatchStream(
            self.drawer,
            phase_at,
            workers=config.workers,
            prefetch=config.prefetch,
            start=self.cursor,
            batches_done=self.count.batches,
        )


def _mixed_seed(seed: int, process: int, batch: int) -> int:
    return (seed * 1_000_003 + process * 7_919 + batch * 104_729) % 2**63
