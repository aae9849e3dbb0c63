"""`gamma serve` stopped at random moments while verdicts come in: what was acknowledged is there afterwards."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from campaign.jobs import environment, half_files, orphans
from campaign.lines import Line
from campaign.setting import Setting
from campaign.zygote import Zygote

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
VERDICTS = 120
STOPS_IN_A_CHAIN = 4


class Server:
    """A server as a process of its own, on facts.tsv of a folder."""

    def __init__(self, zygote: Zygote, folder: Path, *options: str, graph: str = "facts.tsv", early: float = 0) -> None:
        """Waits until it listens; with `early` it is killed after so many seconds, wherever it is then."""
        words = ["serve", graph, "--port", "0", "--log-level", "error", *options]
        self.process, self.address = zygote.start(words, folder, environment(folder)), ""
        end = time.monotonic() + (early or 120)
        while self.process.poll() is None and not self.address and time.monotonic() < end:
            if found := re.search(r"http://\S+", self.said):
                self.address = found[0]
            time.sleep(0.01)
        if early:
            self.process.kill()

    @property
    def said(self) -> str:
        return self.process.said()

    def call(self, path: str, body: Any = None, method: str = "GET") -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}, method=method
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def end(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """Exit code after a signal."""
        if self.process.poll() is None:
            os.kill(self.process.pid, sign)
        return self.process.wait(600)


def killed_server(line: Line, setting: Setting) -> None:
    calm, effort, zygote = setting.fresh("calm"), setting.effort, setting.zygote
    rng = random.Random(f"serve {effort.seed}")
    facts = [line.split("\t") for line in (calm / "facts.tsv").read_text().splitlines()]
    verdicts = [
        {"head": h, "relation": r, "tail": t, "verdict": rng.choice(("accepted", "rejected"))}
        for h, r, t in (facts * 2)[:VERDICTS]
    ]
    server = Server(zygote, calm, "--reviews", "reviews")
    _decide(server, verdicts, 0)
    code = server.end()
    expected = _reviews(calm)
    if code or not expected:
        line.expect(False, f"an undisturbed server ended with {code}: {server.said[-300:]}")
        return
    chain = 0
    while line.tried < effort.kills:
        place = setting.fresh(f"chain{chain}")
        stops = min(STOPS_IN_A_CHAIN, effort.kills - line.tried)
        complaint = _chain(place, verdicts, expected, rng, stops, zygote)
        line.tried += stops
        if complaint:
            line.wrong.append(f"chain {chain}: {complaint}")
        shutil.rmtree(place)
        chain += 1


def _chain(
    place: Path, verdicts: list[dict[str, str]], expected: bytes, rng: random.Random, stops: int, zygote: Zygote
) -> str:
    done = 0
    for _ in range(stops):
        sign = rng.choice(SIGNALS)
        # One in five is killed while it starts; the others while verdicts come in.
        early = rng.uniform(0.05, 0.6) if rng.random() < 0.2 else 0.0
        server = Server(zygote, place, "--reviews", "reviews", early=early)
        if server.address and not early:
            share = done + (len(verdicts) - done) * rng.random() / 2
            timer = threading.Timer(rng.uniform(0, 0.3), lambda s=server, g=sign: os.kill(s.process.pid, g))  # type: ignore[misc]
            done = _decide(server, verdicts, done, until=share, then=timer.start)
            timer.join()
        code = server.end(signal.SIGKILL if early else sign)
        if "Traceback" in server.said or "traceback" in server.said:
            return f"a traceback after {sign.name}: {server.said[-400:]}"
        if code != 0 and not (early or code == -signal.SIGKILL):
            return f"exit code {code} after {sign.name}: {server.said[-300:]}"
        if left := orphans(server.process.pid):
            return f"left the processes {left}"
        kept = [json.loads(line) for line in _reviews(place).splitlines()]
        known = {_fact(row): row["verdict"] for row in kept}
        latest = {_fact(v): v["verdict"] for v in verdicts[:done]}
        # The one after the last acknowledged one may have been written too.
        open_one = [_fact(v) for v in verdicts[done : done + 1]]
        lost = [fact for fact, verdict in latest.items() if known.get(fact) != verdict and fact not in open_one]
        if lost:
            return f"{len(lost)} of {done} acknowledged verdicts are lost after {sign.name}"
    server = Server(zygote, place, "--reviews", "reviews")
    _decide(server, verdicts, done)
    code = server.end()
    if code:
        return f"the last server ended with {code}: {server.said[-300:]}"
    if _reviews(place) != expected:
        return "the verdicts differ from those of an undisturbed server"
    half = half_files(place)
    return f"left half a file: {half[:3]}" if half else ""


def _fact(verdict: dict[str, str]) -> tuple[str, str, str]:
    return verdict["head"], verdict["relation"], verdict["tail"]


def _decide(
    server: Server, verdicts: list[dict[str, str]], done: int, until: float | None = None, then: Any = None
) -> int:
    """Sends verdicts from number `done` on; `then` happens at number `until`. How many were acknowledged."""
    graph = server.call("/v1/graphs")["graphs"][0]["id"]
    for number in range(done, len(verdicts)):
        if until is not None and number >= until:
            then()
            until = None
        try:
            server.call(f"/v1/graphs/{graph}/decisions", verdicts[number], "PUT")
        except (OSError, ValueError):
            return number
    if until is not None:
        then()
    return len(verdicts)


def _reviews(place: Path) -> bytes:
    files = sorted((place / "reviews").glob("*.jsonl"))
    return b"".join(file.read_bytes() for file in files)
