"""The server as a process: it ends in good order, and one that was killed leaves nothing to repair."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gamma_kg.cli import app as command_line
from gamma_kg.errors import GammaError


@contextmanager
def server(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    words = [sys.executable, "-m", "gamma_kg", "serve", "demo", "--port", "0", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address is not None, line + process.stderr.read()
        try:
            yield address[0], process
        finally:
            process.kill()


def post(address: str, path: str, body: Any, method: str = "POST") -> Any:
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(address + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


QUESTION = {"queries": [{"head": "Kenya", "relation": "borders"}], "top_k": 1}
FACT = {"head": "Kenya", "relation": "borders", "tail": "Tanzania"}


def test_sigterm_answers_what_runs_then_ends_and_a_killed_one_starts_again(tmp_path: Path) -> None:
    reviews = ("--reviews", str(tmp_path / "reviews"))
    with server(*reviews) as (address, process):
        assert post(address, "/v1/graphs/demo/predict", QUESTION)["results"][0]["answers"][0]["name"] == "Tanzania"
        post(address, "/v1/graphs/demo/decisions", {**FACT, "verdict": "accepted"}, "PUT")
        asking = threading.Thread(target=_ask_on, args=(address,))
        asking.start()
        process.kill()  # under load
        asking.join()
    with server(*reviews) as (address, process):
        with urllib.request.urlopen(f"{address}/v1/graphs/demo/decisions", timeout=60) as answer:
            assert json.load(answer)["accepted"] == [FACT]
        found: list[Any] = []
        explaining = threading.Thread(target=lambda: found.append(post(address, "/v1/graphs/demo/explain", FACT)))
        explaining.start()
        _wait_until_busy(address)
        process.send_signal(signal.SIGTERM)
        explaining.join()
        assert found and found[0]["tail"] == "Tanzania"
        assert process.wait(60) == 0
        assert process.stderr is not None
        log = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert any(entry.get("path") == "/v1/graphs/demo/explain" and entry["status"] == 200 for entry in log)
    assert not any("traceback" in entry for entry in log)


def test_a_taken_port_and_an_open_door_are_refused_in_a_sentence() -> None:
    from typer.testing import CliRunner

    with server() as (address, _):
        port = address.rsplit(":", 1)[1]
        taken = CliRunner().invoke(command_line, ["serve", "demo", "--port", port])
        assert isinstance(taken.exception, GammaError) and "can't listen" in str(taken.exception)
    for arguments, words in ((["--host", "0.0.0.0"], "--token"), (["--log-level", "loud"], "debug, info")):
        refused = CliRunner().invoke(command_line, ["serve", "demo", *arguments])
        assert isinstance(refused.exception, GammaError) and words in str(refused.exception)


def _ask_on(address: str) -> None:
    try:
        while True:
            post(address, "/v1/graphs/demo/predict", QUESTION)
    except (OSError, ValueError):
        return


def _wait_until_busy(address: str) -> None:
    """Until the question is with the model: two batches then, or one that waits."""
    for _ in range(600):
        with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
            if re.search(r"gamma_(batches|questions_waiting) [1-9]", answer.read().decode()):
                return
    pytest.fail("the question never came")


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """asyncio switches Nagle's algorithm off for sockets that say they are TCP; else two writes are 40 ms apart."""
    from gamma_kg.serve.run import listen

    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
