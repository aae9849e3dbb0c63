"""The folder of a run: config, log, checkpoints, and the state from which it goes on. Every file appears whole.

config.json            what was asked for
log.jsonl              one record per line: training, validation, events
state.pt               weights, average, optimiser, counters: only tensors and numbers, read without code
checkpoints/step-N.safetensors and step-N.ema.safetensors, the last few of them
best.safetensors       the weights with the best mean validation MRR
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gamma_kg.io.atomic import write_text, write_whole
from gamma_kg.io.lock import beside, locked
from gamma_kg.io.output import check_folder
from gamma_kg.io.sealed import parsed, read_object
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.errors import TrainingError

# What makes two runs different runs. Budget, phases, rates and what is watched may change on the way.
FIXED = (
    "model",
    "model_options",
    "graphs",
    "loss",
    "teachers",
    "teacher_share",
    "teacher_mix",
    "whole_teachers",
    "adversarial_temperature",
    "seed",
    "accumulate",
)
CHECKPOINT_NAME = re.compile(r"step-(\d+)(\.ema)?\.safetensors")


class RunFolder:
    """Paths and files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def log_path(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def state_path(self) -> Path:
        return self.path / "state.pt"

    @property
    def best_path(self) -> Path:
        return self.path / "best.safetensors"

    def locked(self) -> AbstractContextManager[None]:
        """The folder for one run alone: two would write over each other's checkpoints."""
        return locked(beside(self.path), f"the run in {self.path}", error=TrainingError)

    def start(self, config: TrainConfig, *, resume: bool) -> None:
        """Make the folder; an old run is only touched to go on with it."""
        check_folder(self.path)
        if not resume and self.state_path.exists():
            raise TrainingError(f"{self.path} holds a run already: go on with --resume, or choose another --out")
        if resume:
            self._refuse_another_run(config)
        (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
        if not resume:
            # What a run left behind that died before its first checkpoint.
            self.log_path.unlink(missing_ok=True)
        write_text(self.path / "config.json", config.model_dump_json(indent=1), error=TrainingError)

    def _refuse_another_run(self, config: TrainConfig) -> None:
        """A run goes on with the model, loss, graphs and seed that it began with; budget and rates may change."""
        begun = self.config()
        for name in FIXED:
            if getattr(config, name) != getattr(begun, name):
                raise TrainingError(
                    f"{self.path} was begun with {name} = {getattr(begun, name)!r}, not {getattr(config, name)!r}: "
                    "it can't go on with that. Leave it as it was, or start another run with another --out"
                )

    def config(self) -> TrainConfig:
        """The config of the run, as it was last started."""
        if not (self.path / "config.json").is_file():
            raise TrainingError(f"{self.path} is not the folder of a run: no config.json there")
        options = read_object(self.path / "config.json", "the config of a run", error=TrainingError)
        return TrainConfig.parse(options, where=str(self.path))

    def append(self, record: Mapping[str, Any]) -> None:
        """One line of the log."""
        with self.log_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def records(self, kind: str | None = None) -> Iterator[dict[str, Any]]:
        """Lines of the log; a line that was cut short by a crash is passed over."""
        if not self.log_path.is_file():
            raise TrainingError(f"{self.path} is not the folder of a run: no log.jsonl there")
        for line in self.log_path.read_bytes().splitlines():
            try:
                record = parsed(line)
            except ValueError:
                continue
            if isinstance(record, dict) and (kind is None or record.get("kind") == kind):
                yield record

    def cut_log(self, step: int) -> None:
        """Forget what was logged after `step`: it will happen again."""
        if not self.log_path.is_file():
            return
        kept = [json.dumps(record) + "\n" for record in self.records() if record.get("step", 0) <= step]
        write_text(self.log_path, "".join(kept), error=TrainingError)

    def save_state(self, state: Mapping[str, Any]) -> None:
        def write(file: Path) -> None:
            file.write_bytes(_packed(state))
            with file.open("ab") as end:
                end.write(_digest(file, file.stat().st_size))

        write_whole(self.state_path, write, error=TrainingError, sync=True)

    def load_state(self) -> dict[str, Any]:
        """The saved state; only tensors and plain values are read."""
        if not self.state_path.is_file():
            raise TrainingError(f"nothing to resume in {self.path}: no {self.state_path.name} there")
        try:
            _check_digest(self.state_path)
            state: dict[str, Any] = torch.load(self.state_path, map_location="cpu", weights_only=True)
        except Exception as error:  # both raise many kinds; all mean the same to the user
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TrainingError(f"{self.state_path} can't be read: {told}") from None
        return state

    def save_batch(self, step: int, tensors: Mapping[str, Tensor]) -> Path:
        """Keep a batch that broke the run."""
        path = self.path / f"broken-batch-{step}.pt"
        write_whole(path, lambda file: file.write_bytes(_packed(tensors)), error=TrainingError)
        return path

    def checkpoint_path(self, step: int, *, average: bool) -> Path:
        return self.path / "checkpoints" / f"step-{step:07d}{'.ema' if average else ''}.safetensors"

    def checkpoints(self) -> list[Path]:
        """All saved checkpoints, oldest first."""
        found = (self.path / "checkpoints").glob("step-*.safetensors")
        return sorted((path for path in found if step_of(path) >= 0), key=lambda path: (step_of(path), path.name))

    def drop_old(self, keep: int) -> None:
        """Delete all but the checkpoints of the last `keep` steps; 0 keeps all."""
        steps = sorted({step_of(path) for path in self.checkpoints()})
        for path in self.checkpoints():
            if keep and step_of(path) not in steps[-keep:]:
                path.unlink()


def _packed(state: Mapping[str, Any]) -> memoryview:
    """What torch writes; not to a file by itself: of a full disk it tells in many ways, and none names the disk."""
    content = io.BytesIO()
    torch.save(dict(state), content)
    return content.getbuffer()


def _digest(path: Path, size: int) -> bytes:
    """What stands behind the first `size` bytes of a state: their checksum."""
    found, left = hashlib.sha256(), size
    with path.open("rb") as file:
        while left and (block := file.read(min(left, 1 << 20))):
            found.update(block)
            left -= len(block)
    return b"sha256 " + found.hexdigest().encode()


def _check_digest(path: Path) -> None:
    """Refuses a state that is not as it was written: weights with a flipped bit would be trained on.

    torch does not look at the checksums of its archive, and those do not cover the archive's own lists.
    """
    size = path.stat().st_size - len(_digest(path, 0))
    with path.open("rb") as file:
        file.seek(max(0, size))
        if file.read() == _digest(path, max(0, size)):
            return
        file.seek(max(0, path.stat().st_size - len(ZIP_END)))
        if not file.read().startswith(ZIP_END[:4]):
            raise ValueError("it is damaged")
    # As earlier versions wrote it, without a checksum of the whole: it ends with the archive.
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"{damaged} is damaged")


# The record that ends an archive without a comment.
ZIP_END = b"PK\x05\x06" + bytes(18)


def step_of(path: Path) -> int:
    """The step in a checkpoint's name; -1 for other files."""
    match = CHECKPOINT_NAME.fullmatch(path.name)
    return int(match[1]) if match else -1
