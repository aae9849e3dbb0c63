"""Starts commands of gamma without paying for the imports each time: one process imports, and forks for each command.

What is forked is a whole process with a session of its own that runs the command line; it can be killed like any other.
A program of the campaign (its name ends with .py) is started in the same way.
Starting Python takes longer than most small jobs, and 200 kills would be an hour of imports. Some kills still go to
processes that are started the usual way, so that imports are hit too.

`Zygote` is the campaign's side; run as a program this file is the process that forks. They talk in JSON, a line each.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

IMPORTS = (
    "torch", "polars", "gamma_kg.cli", "gamma_kg.predicting.gamma", "gamma_kg.predicting.models",
    "gamma_kg.complete.proposals", "gamma_kg.evaluation.benchmark", "gamma_kg.evaluation.store",
    "gamma_kg.training.pretrain", "gamma_kg.training.finetune", "gamma_kg.training.adapt", "gamma_kg.data.download",
    "gamma_kg.graph.store.index", "gamma_kg.serve.app", "gamma_kg.serve.run", "gamma_kg.serve.service",
    "rdflib", "gamma_kg.report.render", "gamma_kg.report.runs", "gamma_kg.logic.query_sets", "gamma_kg.logic.sparql",
)  # fmt: skip


PR_SET_PDEATHSIG = 1  # of linux/prctl.h
# Threads that polars starts when it is imported, to tidy up; a fork goes well without them.
HARMLESS = {"python", "jemalloc_bg_thd", "polars-ooc-clea"}


class Child:
    """A forked command; used like subprocess.Popen."""

    def __init__(self, zygote: Zygote, pid: int, said: Path) -> None:
        self.pid, self.returncode, self._zygote, self._said = pid, None, zygote, said

    returncode: int | None
    peak_mb: float = 0.0
    cpu_seconds: float = 0.0

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode, self.peak_mb, self.cpu_seconds = self._zygote.ask({"poll": self.pid})
            self._zygote.used_seconds += self.cpu_seconds
        return self.returncode

    def wait(self, timeout: float = 900) -> int:
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("gamma", timeout)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float = 900) -> tuple[str, str]:
        self.wait(timeout)
        return "", self.said()

    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Zygote:
    """The process that has imported everything; it is there once the first command is started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="gamma-faults-said-")
        self._number = 0
        self.used_seconds = 0.0  # of the processor, by the commands that have ended

    def ask(self, request: dict[str, Any]) -> Any:
        if self._process is None:
            environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            if not self.ask({"ready": True}):
                raise RuntimeError("imports start threads: nothing can be forked")
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> Child:
        self._number += 1
        said = Path(self._folder.name, f"{self._number}")
        said.touch()
        changes = {name: value for name, value in environment.items() if os.environ.get(name) != value}
        words = {"words": list(arguments), "folder": str(folder), "environment": changes, "said": str(said)}
        return Child(self, self.ask({"start": words}), said)

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
        self._folder.cleanup()


def serve() -> dict[str, Any] | None:
    """Answers requests. In the child it returns what to run; in the parent it ends with the input."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        answer: Any = None
        if "ready" in request:
            answer = _threads() <= HARMLESS
        elif "start" in request:
            answer = os.fork()
            if answer == 0:
                return dict(request["start"])
        elif "poll" in request:
            pid, status, used = os.wait4(request["poll"], os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if pid else None
            answer = code, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
        print(json.dumps(answer), flush=True)
    return None


def _threads() -> set[str]:
    return {task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")} - {Path(sys.executable).name}


def end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def become(command: dict[str, Any]) -> None:
    """The forked process turns into the command. Should the campaign be ended, it ends too."""
    os.setsid()
    end_with_parent()
    os.chdir(command["folder"])
    os.environ.update(command["environment"])
    nothing, said = os.open(os.devnull, os.O_RDWR), os.open(command["said"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    shown = os.environ.get("GAMMA_FAULTS_STDOUT", os.devnull)
    told = os.open(shown, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for number, file in ((0, nothing), (1, told), (2, said)):
        os.dup2(file, number)
    if "GAMMA_FAULTS_USER" in os.environ:
        os.setgid(int(os.environ["GAMMA_FAULTS_USER"]))
        os.setuid(int(os.environ["GAMMA_FAULTS_USER"]))
    sys.argv = command["words"] if _is_program(command["words"]) else ["gamma", *command["words"]]


def _is_program(words: list[str]) -> bool:
    return words[0].endswith(".py")


if __name__ == "__main__":
    import importlib

    for name in IMPORTS:
        importlib.import_module(name)
    if "GAMMA_FAULTS_SERVER" in os.environ:
        # Before the fork: a command that is stopped in it would not have come to its own first line yet.
        from fetch_program import use_server

        use_server()
    # What was imported is no garbage: else each command looks through all of it when it ends, for half a second.
    gc.freeze()
    todo = serve()
    if todo is not None:
        become(todo)
        if _is_program(todo["words"]):
            runpy.run_path(todo["words"][0], run_name="__main__")
        else:
            from gamma_kg.__main__ import main

            main()
