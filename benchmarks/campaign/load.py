"""The server at a full queue for a long time: every caller is answered or told to come later, and memory stays flat."""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from campaign.killed_server import Server
from campaign.lines import Effort, Line
from campaign.setting import Attempt, Setting

QUEUE, CALLERS = 16, 48
# Answered, or told to come later. With a queue of 16 nobody waits for as long as SECONDS, so no other answer is right.
ALLOWED, SECONDS = (200, 429), 60
# What may be taken after the first third: caches fill up to their bounds.
MAY_GROW_MB = 32


def load(effort: Effort) -> dict[str, Attempt]:
    return {"load: a full queue, memory flat": _full_queue}


def _full_queue(line: Line, setting: Setting) -> None:
    server = Server(setting.zygote, setting.folder, "--queue", str(QUEUE), "--seconds", str(SECONDS), graph="demo")
    graph = server.call("/v1/graphs")["graphs"][0]["id"]
    entities = [row["name"] for row in server.call(f"/v1/graphs/{graph}/entities?limit=1000")]
    relations = [row["name"] for row in server.call(f"/v1/graphs/{graph}/relations?limit=1000")]
    seconds = 60 * setting.effort.load_minutes
    answers, memory = _press(server, graph, entities, relations, seconds)
    line.tried = sum(answers.values())
    line.wrong = [f"{count} answers with {code}" for code, count in answers.items() if code not in ALLOWED]
    line.expect(answers[429] > 0, "the queue was never full")
    third = len(memory) // 3
    before, after = max(memory[:third] or [0.0]), max(memory[third:] or [0.0])
    line.expect(after <= before + MAY_GROW_MB, f"memory grew from {before:.0f} to {after:.0f} MB")
    line.expect(server.end() == 0, f"ended badly: {server.said[-300:]}")
    line.expect("Traceback" not in server.said, server.said[-300:])
    line.remark = (
        f"{setting.effort.load_minutes:g} minutes, {CALLERS} callers, {answers[200]:,} answers, {answers[429]:,} told "
        f"to come later; {_at(memory, 60, seconds):.0f} MB after a minute, "
        f"{before:.0f} MB at most in the first third, {after:.0f} MB after it, {memory[-1]:.0f} MB at the end"
    )


def _press(
    server: Server, graph: str, entities: list[str], relations: list[str], seconds: float
) -> tuple[Counter[object], list[float]]:
    """Codes of all answers, and the server's memory every few seconds."""
    answers: Counter[object] = Counter()
    first: dict[tuple[tuple[str, str], ...], bytes] = {}
    counting, end = threading.Lock(), time.monotonic() + seconds

    def call(number: int) -> None:
        rng, address = random.Random(number), urlsplit(server.address)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        while time.monotonic() < end:
            query = {rng.choice(("head", "tail")): rng.choice(entities), "relation": rng.choice(relations)}
            try:
                connection.request(
                    "POST", f"/v1/graphs/{graph}/predict", json.dumps({"queries": [query]}),
                    {"Content-Type": "application/json"},
                )  # fmt: skip
                answer = connection.getresponse()
                said = answer.read()
                code: object = answer.status
                if code == 200 and first.setdefault(tuple(query.items()), said) != said:
                    code = "200 that differs from the first answer to the same question"
                elif code not in ALLOWED:
                    code = f"{code}: {said[:120]!r}"
            except (OSError, http.client.HTTPException) as error:
                code = type(error).__name__
                connection.close()
            with counting:
                answers[code] += 1
            if code == 429:
                time.sleep(rng.uniform(0, 0.2))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    memory: list[float] = []
    while time.monotonic() < end:
        time.sleep(min(5.0, seconds / 12))
        memory.append(_resident(server.process.pid))
    for caller in callers:
        caller.join()
    return answers, memory


def _at(memory: list[float], second: float, seconds: float) -> float:
    """What was taken then; measured at equal steps over all the seconds."""
    return memory[min(len(memory) - 1, int(len(memory) * second / seconds))]


def _resident(process: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0
