"""How many questions a second `gamma serve` answers on loopback, with and without batching: measured with wrk.

    python benchmarks/serving.py demo --seconds 10
    python benchmarks/serving.py FOLDER/train.txt --seconds 10 --options "--memory 2GB"

Every caller asks different questions (drawn from all entities and relations), so nothing is answered from memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local id = 0
function setup(thread) thread:set("seed", id); id = id + 1 end
function init(args) math.randomseed(seed + os.time()) end
function request()
  return wrk.format("POST", "%s", {["Content-Type"] = "application/json"}, bodies[math.random(#bodies)])
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %%d %%d %%f %%f %%f %%d\\n", summary.requests, summary.duration,
    latency:percentile(50) / 1000, latency:percentile(95) / 1000, latency:percentile(99) / 1000,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


class Server:
    """`gamma serve` as a process; `resident` is its memory in MB."""

    def __init__(self, graph: str, options: list[str]) -> None:
        words = [sys.executable, "-m", "gamma_kg", "serve", graph, "--port", "0", "--log-level", "warning", *options]
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            raise SystemExit(f"the server did not start: {line}{self._process.stderr.read()}")
        self.address = found[0]

    def get(self, path: str) -> object:
        with urllib.request.urlopen(self.address + path, timeout=600) as answer:
            return json.load(answer)

    @property
    def resident(self) -> float:
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]

    def end(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(120)


def write_questions(server: Server, graph: str, path: Path, count: int) -> None:
    """Random questions, one JSON body a line."""
    generator = random.Random(0)
    relations = [r["name"] for r in server.get(f"/v1/graphs/{graph}/relations?limit=1000")]  # type: ignore[attr-defined]
    entities = [e["name"] for e in server.get(f"/v1/graphs/{graph}/entities?limit=1000")]  # type: ignore[attr-defined]
    with path.open("w") as file:
        for _ in range(count):
            end = generator.choice(("head", "tail"))
            query = {end: generator.choice(entities), "relation": generator.choice(relations)}
            file.write(json.dumps({"queries": [query]}) + "\n")


def warm_up(server: Server, graph: str, questions: Path) -> None:
    """Asks some questions once: what is computed per relation, and once only, is not what is measured."""
    for line in questions.read_text().splitlines()[:200]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.address}/v1/graphs/{graph}/predict", line.encode(), headers)
        urllib.request.urlopen(request, timeout=600).read()


def measure(server: Server, script: Path, callers: int, seconds: float) -> dict[str, float]:
    words = ["wrk", "-t1", f"-c{callers}", f"-d{seconds:g}s", "--timeout", "60s", "-s", str(script), server.address]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    requests, duration, p50, p95, p99, errors = map(float, re.search(r"RESULT (.*)", out)[1].split())  # type: ignore[index]
    return {
        "rps": requests / (duration / 1e6),
        "requests": requests,
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "errors": errors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("graph")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 1])
    parser.add_argument("--soak", type=float, default=0.0, help="Seconds of 64 callers at the end, for the memory.")
    parser.add_argument("--distinct", type=int, default=5000, help="Different questions that callers choose from.")
    parser.add_argument("--options", default="", help="Further options of gamma serve.")
    given = parser.parse_args()
    print("| batch | callers | requests/s | p50 ms | p95 ms | p99 ms | errors | resident MB |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        questions, script = Path(folder) / "questions.jsonl", Path(folder) / "ask.lua"
        for batch in given.batches:
            server = Server(
                given.graph, ["--batch", str(batch), "--queue", "1024", "--seconds", "120", *shlex.split(given.options)]
            )
            graph = server.get("/v1/graphs")["graphs"][0]["id"]  # type: ignore[index]
            write_questions(server, graph, questions, given.distinct)
            script.write_text(SCRIPT % (questions, f"/v1/graphs/{graph}/predict"))
            warm_up(server, graph, questions)
            runs = [(callers, given.seconds) for callers in given.callers]
            if given.soak and batch > 1:
                runs += [(64, given.soak / 4)] * 4
            for callers, seconds in runs:
                m = measure(server, script, callers, seconds)
                print(
                    f"| {batch} | {callers} | {m['rps']:.1f} | {m['p50']:.1f} | {m['p95']:.1f} | {m['p99']:.1f} "
                    f"| {m['errors']:.0f} of {m['requests']:.0f} | {server.resident:.0f} |",
                    flush=True,
                )
            assert server.end() == 0
    print(f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', '(unset)')}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
