"""What a watcher of a run sees: a live line on a terminal, plain lines in a file, TensorBoard on demand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from gamma_kg.errors import ConfigError
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.run_folder import RunFolder

Watcher = Callable[[Mapping[str, Any]], None]
# A file that is not a terminal gets a training line this often.
SECONDS_BETWEEN_LINES = 30.0


def watchers(config: TrainConfig, folder: RunFolder) -> list[Watcher]:
    """The live line, and TensorBoard where the config asks for it."""
    found: list[Watcher] = [LiveLine()]
    if config.tensorboard:
        found.append(tensorboard_watcher(folder))
    return found


class LiveLine:
    """Step, loss, steps/s, samples/s, time to go, waiting share and validation MRR in one line on stderr."""

    def __init__(self) -> None:
        self._first: Mapping[str, Any] | None = None
        self._written_at = -SECONDS_BETWEEN_LINES
        self._is_open = False
        self._validation = ""

    def __call__(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "train":
            self._first = self._first or record
            self._show(train_line(record, self._first) + self._validation)
        elif record["kind"] == "validation":
            sets = " ".join(f"{name} {mrr:.3f}" for name, mrr in record["mrr"].items())
            self._validation = f"  MRR {record['mean']:.3f}"
            mean, took = f"{record['mean']:.4f}", f"{record['took']:.0f} s"
            self._write(f"step {record['step']:,}  validation MRR {mean}  ({sets}; {took})")
        else:
            self._write(f"step {record['step']:,}  {record['event']}")

    def _show(self, line: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{line}")
            sys.stderr.flush()
            self._is_open = True
        elif time.monotonic() - self._written_at >= SECONDS_BETWEEN_LINES:
            self._written_at = time.monotonic()
            self._write(line)

    def _write(self, line: str) -> None:
        sys.stderr.write(f"{chr(10) if self._is_open else ''}{line}\n")
        sys.stderr.flush()
        self._is_open = False


def train_line(record: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """One line of progress; rates are those since `first`, so a resumed run shows its own.

    The time to go is that of the whole run so far as long as there is nothing since `first`.
    """
    seconds = record["seconds"] - first["seconds"]
    rate = (record["step"] - first["step"]) / seconds if seconds > 0 else 0.0
    samples = (record["samples"] - first["samples"]) / seconds if seconds > 0 else 0.0
    waited = (record["waited"] - first["waited"]) / seconds if seconds > 0 else 0.0
    took, gained = seconds, record["progress"] - first["progress"]
    if gained <= 0:
        took, gained = record["seconds"], record["progress"]
    eta = took * (1 - record["progress"]) / gained if gained > 0 else 0.0
    return (
        f"step {record['step']:,}  loss {record['loss']:.4f}  {rate:.2f} steps/s  {samples:.1f} samples/s  "
        f"{record['progress']:.1%} done, {clock(eta)} to go  waited {waited:.1%}"
    )


def clock(seconds: float) -> str:
    """h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tensorboard_watcher(folder: RunFolder) -> Watcher:
    """Writes every number of the log to TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError("tensorboard = true needs TensorBoard: pip install 'gamma-kg[track]'") from None
    writer = SummaryWriter(str(folder.path / "tensorboard"))

    def watch(record: Mapping[str, Any]) -> None:
        scalars = {key: value for key, value in record.items() if isinstance(value, float)}
        scalars |= {f"mrr/{name}": mrr for name, mrr in record.get("mrr", {}).items()}
        for key, value in scalars.items():
            writer.add_scalar(f"{record['kind']}/{key}", value, record["step"])
        if record["kind"] != "train":
            writer.flush()

    return watch
