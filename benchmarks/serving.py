"""How many questions a second `gamma serve` answers on loopback, with and without batching: measured with wrk.

    python benchmarks/serving.py demo --seconds 10
    python benchmarks/serving.py FOLDER/train.txt --seconds 10 --options "--memory 2GB"
    python benchmarks/serving.py demo --soak 100000

Two servers run at the same time and take turns. Every caller asks different questions (drawn from all entities and
relations), so nothing is answered from memory. Nothing is fitted: the servers get an empty cache.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass, field
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

    def __init__(self, graph: str, options: list[str], cache: Path) -> None:
        words = [sys.executable, "-m", "gamma_kg", "serve", graph, "--port", "0", "--log-level", "warning", *options]
        surroundings = {**os.environ, "GAMMA_CACHE": str(cache)}
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=surroundings)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            raise SystemExit(f"the server did not start: {line}{self._process.stderr.read()}")
        self.address = found[0]

    def get(self, path: str) -> object:
        with urllib.request.urlopen(self.address + path, timeout=600) as answer:
            return json.load(answer)

    def figures(self) -> dict[str, float]:
        """Questions and batches so far, and seconds of CPU."""
        with urllib.request.urlopen(self.address + "/metrics", timeout=600) as answer:
            text = answer.read().decode()
        found = {name: float(re.search(rf"^gamma_{name} (\S+)", text, re.M)[1]) for name in ("questions", "batches")}  # type: ignore[index]
        times = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return {**found, "cpu": sum(map(int, times)) / os.sysconf("SC_CLK_TCK")}

    @property
    def resident(self) -> float:
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *failure: object) -> None:
        """Ends the process, also where the measurement failed; it must end in order."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(120) == 0


def write_questions(server: Server, graph: str, path: Path, count: int, relations: int) -> int:
    """Random questions about so many relations, one JSON body a line; how many of the first ask about each once."""
    generator = random.Random(0)
    names = [r["name"] for r in server.get(f"/v1/graphs/{graph}/relations?limit=1000")]  # type: ignore[attr-defined]
    names = generator.sample(names, min(relations, len(names)))
    entities = [e["name"] for e in server.get(f"/v1/graphs/{graph}/entities?limit=1000")]  # type: ignore[attr-defined]
    asked = [(end, relation) for relation in names for end in ("head", "tail")]
    with path.open("w") as file:
        for end, relation in asked + generator.choices(asked, k=count):
            query = {end: generator.choice(entities), "relation": relation}
            file.write(json.dumps({"queries": [query]}) + "\n")
    return len(asked)


def warm_up(server: Server, graph: str, questions: Path, count: int) -> None:
    """Asks some questions once: what is computed per relation, and once only, is not what is measured."""
    for line in questions.read_text().splitlines()[:count]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.address}/v1/graphs/{graph}/predict", line.encode(), headers)
        urllib.request.urlopen(request, timeout=600).read()


def measure(server: Server, script: Path, callers: int, seconds: float) -> dict[str, float]:
    words = ["wrk", "-t1", f"-c{callers}", f"-d{seconds:g}s", "--timeout", "60s", "-s", str(script), server.address]
    before = server.figures()
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    requests, duration, p50, p95, p99, errors = map(float, re.search(r"RESULT (.*)", out)[1].split())  # type: ignore[index]
    after = server.figures()
    used = {name: after[name] - before[name] for name in before}
    run = {"rps": requests / (duration / 1e6), "requests": requests, "p50": p50, "p95": p95, "p99": p99}
    return {**run, **used, "errors": errors, "resident": server.resident}


@dataclass
class Tally:
    """What one server did under one number of callers, over all rounds."""

    runs: list[dict[str, float]] = field(default_factory=list)

    def add(self, run: dict[str, float]) -> None:
        self.runs.append(run)

    def median(self, name: str) -> float:
        return statistics.median(run[name] for run in self.runs)

    def sum(self, name: str) -> float:
        return sum(run[name] for run in self.runs)

    def row(self, batch: int, callers: int) -> str:
        """Medians over the rounds; questions in a batch and CPU time a request over all of them."""
        cells = [f"{self.median(name):.1f}" for name in ("rps", "p50", "p95", "p99")]
        together = self.sum("questions") / max(self.sum("batches"), 1)
        cpu = 1000 * self.sum("cpu") / max(self.sum("requests"), 1)
        cells += [f"{together:.1f}", f"{cpu:.1f}", f"{self.sum('errors'):.0f} of {self.sum('requests'):.0f}"]
        return f"| {batch} | {callers} | {' | '.join(cells)} | {self.runs[-1]['resident']:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("graph")
    parser.add_argument("--seconds", type=float, default=10.0, help="Of one run; the servers take turns.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 1])
    parser.add_argument("--soak", type=int, default=0, help="Instead: so many requests of 64 callers, for the memory.")
    parser.add_argument("--distinct", type=int, default=5000, help="Different questions that callers choose from.")
    parser.add_argument("--relations", type=int, default=30, help="Relations that they ask about.")
    parser.add_argument("--options", default="", help="Further options of gamma serve.")
    given = parser.parse_args()
    threads, load = os.environ.get("OMP_NUM_THREADS", "(unset)"), os.getloadavg()[0]
    print(f"OMP_NUM_THREADS={threads}, {os.cpu_count()} cores, load {load:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        questions, script = Path(folder) / "questions.jsonl", Path(folder) / "ask.lua"
        options = ["--queue", "1024", "--seconds", "120", *shlex.split(given.options)]
        batches = given.batches[:1] if given.soak else given.batches
        with ExitStack() as ending:
            servers = {
                batch: ending.enter_context(Server(given.graph, ["--batch", str(batch), *options], Path(folder)))
                for batch in batches
            }
            for server in servers.values():
                graph = server.get("/v1/graphs")["graphs"][0]["id"]  # type: ignore[index]
                first = write_questions(server, graph, questions, given.distinct, given.relations)
                script.write_text(SCRIPT % (questions, f"/v1/graphs/{graph}/predict"))
                warm_up(server, graph, questions, max(first, 100))
            if given.soak:
                soak(next(iter(servers.values())), script, given.soak, given.seconds)
            else:
                compare(servers, script, given.callers, given.rounds, given.seconds)


def compare(servers: dict[int, Server], script: Path, callers: list[int], rounds: int, seconds: float) -> None:
    """The servers in turns: on a machine that others use, only what ran side by side can be compared."""
    print("| batch | callers | requests/s | p50 ms | p95 ms | p99 ms | in a batch | CPU ms | errors | resident MB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for count in callers:
        tallies = {batch: Tally() for batch in servers}
        for _ in range(rounds):
            for batch, server in servers.items():
                tallies[batch].add(measure(server, script, count, seconds))
        for batch, tally in tallies.items():
            print(tally.row(batch, count), flush=True)
        first, *others = (tally.median("rps") for tally in tallies.values())
        for other in others:
            print(f"{count} callers: {first / other:.2f} x" if other else "no request was answered")


def soak(server: Server, script: Path, wanted: int, seconds: float) -> None:
    """Requests until there were enough, and the memory as it goes."""
    done = errors = 0.0
    while done < wanted:
        run = measure(server, script, 64, seconds)
        done, errors = done + run["requests"], errors + run["errors"]
        print(f"{done:.0f} requests, {errors:.0f} errors, {run['resident']:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
