"""Input made to do harm: bombs, servers that never end, names that steer a terminal or a page, absurd checkpoints."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from campaign.jobs import environment, prepare
from campaign.killed_server import Server
from campaign.killing import commands
from campaign.lines import Effort, Line
from campaign.zygote import Zygote

# Seconds of the processor, so that a busy machine does not count as a hang; and of the clock, after which it is one.
MAX_SECONDS, MAX_WAIT, MAX_MB = 20.0, 300.0, 2048
EVIL = (
    "<script>alert(1)</script>", "</svg><script>x", "=cmd()|' /C calc'!A0", "@SUM(1)", "+1+cmd()", "../../x",
    "..\\..\\x", "/etc/passwd", "\x1b[2J\x1b]0;owned\x07", "safe\u202eexe.txt", "a\u2066b\u2069",
    "'\"><img src=x onerror=alert(1)>",
    "{{7*7}}", "${jndi:ldap://x}", "javascript:alert(1)", "\x00nul", "line\u2028two", "%00%2e%2e", "CON", "--out", "-x",
)  # fmt: skip
# What steers a terminal: controls but for line ends and tabs, and marks of direction.
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def hostile_input(folder: Path, effort: Effort) -> Iterator[Line]:
    start = folder / "start"
    prepare(start)
    with commands() as zygote:
        for line, attempt in (
            (Line("bombs"), _bombs),
            (Line("remote JSON-LD contexts"), _contexts),
            (Line("SPARQL endpoints that do harm"), _endpoints),
            (Line("evil names in every output"), _names),
            (Line("absurd checkpoints"), _checkpoints),
        ):
            if effort.wants(line.name):
                place = folder / line.name.replace(" ", "")
                place.mkdir()
                attempt(line, place, zygote)
                yield line


def _refused(line: Line, what: str, words: list[str], folder: Path, zygote: Zygote, wait: float = MAX_WAIT) -> str:
    """Expects one line, exit code 2, soon and in little memory."""
    process = zygote.start(words, folder, environment(folder))
    try:
        _, said = process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        process.kill()
        line.expect(False, f"{what}: no end after {wait:.0f} s")
        return ""
    errors = [text for text in said.splitlines() if text.startswith("gamma: ")]
    line.expect(process.returncode == 2, f"{what}: exit code {process.returncode}: {said[-300:]}")
    line.expect("Traceback" not in said and bool(errors), f"{what}: said {said[-300:]}")
    line.expect(process.peak_mb < MAX_MB, f"{what}: {process.peak_mb:.0f} MB")
    line.expect(process.cpu_seconds < MAX_SECONDS, f"{what}: {process.cpu_seconds:.0f} s")
    line.remark = f"at most {max(process.peak_mb, float((line.remark or 'at most 0').split()[2])):.0f} MB"
    return said


def _bombs(line: Line, folder: Path, zygote: Zygote) -> None:
    import zstandard

    zeros, rows = bytes(1 << 20), b"a\tr\tb\n" * 170_000
    with gzip.open(folder / "rows.tsv.gz", "wb") as file:
        for _ in range(600):
            file.write(rows)
    with gzip.open(folder / "zeros.nt.gz", "wb") as file:
        for _ in range(2000):
            file.write(zeros)
    packer = zstandard.ZstdCompressor().compressobj()
    with (folder / "rows.tsv.zst").open("wb") as file:
        for _ in range(600):
            file.write(packer.compress(rows))
        file.write(packer.flush())
    (folder / "twice.tsv.gz").write_bytes(gzip.compress((folder / "zeros.nt.gz").read_bytes()))
    entities = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(12))
    (folder / "laughs.rdf").write_text(RDF % (f'<!ENTITY e0 "x">{entities}', "&e12;"))
    (folder / "quadratic.rdf").write_text(RDF % (f'<!ENTITY e12 "{"x" * 900}">', "&e12;" * 400_000))
    (folder / "outside.rdf").write_text(RDF % ('<!ENTITY e12 SYSTEM "file:///etc/passwd">', "&e12;"))
    (folder / "deep.jsonl").write_text("[" * 3_000_000)
    (folder / "deep.jsonld").write_text('{"a":' * 1_000_000)
    (folder / "deep.ttl").write_text("<a:a> <a:b> " + "[ <a:b> " * 300_000)
    (folder / "lists.ttl").write_text("<a:a> <a:b> " + "( " * 300_000)
    (folder / "line.tsv").write_bytes(b"a" * (40 << 20))
    (folder / "digits.jsonl").write_text(f'["a","r",{"9" * 3_000_000}]\n')
    for path in sorted(folder.glob("*.*")):
        _refused(line, path.name, ["index", path.name, "--out", "g.gamma"], folder, zygote)


RDF = (
    '<!DOCTYPE rdf:RDF [%s]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    '<rdf:Description rdf:about="http://e.org/a"><e:p>%s</e:p></rdf:Description></rdf:RDF>'
)


@contextmanager
def _answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback that answers every request by the function; and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                answer(self)
            except OSError:
                return

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _contexts(line: Line, folder: Path, zygote: Zygote) -> None:
    def context(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b'{"@context": {"p": "http://e.org/p"}}')

    with _answering(context) as (address, asked):
        for number, text in enumerate(
            (
                json.dumps(f"{address}/c.jsonld"),
                json.dumps({"@import": f"{address}/c"}),
                json.dumps([{}, f"{address}/c"]),
                json.dumps({"p": {"@id": "http://e.org/p", "@context": f"{address}/c"}}),
            )
        ):
            node = '"@id": "http://e.org/a", "p": {"@id": "http://e.org/b"}'
            (folder / f"f{number}.jsonld").write_text(f'{{"@context": {text}, {node}}}')
            words = ["index", f"f{number}.jsonld", "--out", "g.gamma"]
            _refused(line, f"context {text[:40]}", words, folder, zygote)
            line.expect(not asked, f"the network was asked for {asked}")


def _endpoints(line: Line, folder: Path, zygote: Zygote) -> None:
    def page(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.05)

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * (1 << 20))

    def redirect(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://169.254.169.254/secret")
        handler.end_headers()

    row = '{"s":{"type":"uri","value":"x:a"},"p":{"type":"uri","value":"x:p"},"o":{"type":"uri","value":"x:b"}}'
    table = f'{{"head":{{"vars":["s","p","o"]}},"results":{{"bindings":[{row}]}}}}'.encode()
    attacks: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
        "hangs": lambda handler: time.sleep(30),
        "drips for ever": drip,
        "floods": flood,
        "redirects elsewhere": redirect,
        "never ends": lambda handler: page(handler, table),
        "is a page": lambda handler: page(handler, b"<html><script>alert(1)</script></html>"),
        "hangs up": lambda handler: handler.connection.close(),
        "nests deeply": lambda handler: page(handler, b"[" * 1_000_000),
    }
    for name, answer in attacks.items():
        with _answering(answer) as (address, _):
            words = ["index", f"sparql:{address}/query", "--out", "g.gamma", "--timeout", "2"]
            _refused(line, f"an endpoint that {name}", words, folder, zygote)


def _names(line: Line, folder: Path, zygote: Zygote) -> None:
    """A graph of evil names through every command that writes; nothing steers, runs or leaves the folder."""
    clean = [name for name in EVIL if "\x00" not in name]
    rows = [(a, f"rel {clean[i % 5]}", clean[(3 * i + 1) % len(clean)]) for i, a in enumerate(clean * 3)]
    rows += [(b, "plain", a) for a, _, b in rows]
    (folder / "f.jsonl").write_text("".join(json.dumps(row) + "\n" for row in dict.fromkeys(rows)))
    (folder / "q.jsonl").write_text("".join(json.dumps([name, "plain", None]) + "\n" for name in clean))
    head, _, tail = rows[0]
    fact = ("--head", head, "--relation", rows[0][1], "--tail", tail)
    before = {path for path in folder.parent.rglob("*") if folder not in path.parents}
    commands_ = {
        "p.csv": ["predict", "f.jsonl", "--queries", "q.jsonl", "--out", "p.csv"],
        "p.tsv": ["predict", "f.jsonl", "--queries", "q.jsonl", "--out", "p.tsv"],
        "p.nt": ["predict", "f.jsonl", "--queries", "q.jsonl", "--out", "p.nt"],
        "c.csv": ["complete", "f.jsonl", "--out", "c.csv", "--review", "r.html", "--top", "30"],
        "e.svg": ["explain", "f.jsonl", *fact, "--out", "e.svg"],
        "e.html": ["explain", "f.jsonl", *fact, "--out", "e.html"],
        "e.txt": ["explain", "f.jsonl", *fact, "--out", "e.txt"],
        "describe": ["describe", "f.jsonl", "--no-time"],
        "error": ["predict", "f.jsonl", "--head", "\x1b[2J<script>", "--relation", "plain"],
        "error2": ["index", "\x1b]0;owned\x07.tsv", "--out", "g.gamma"],
    }
    for name, words in commands_.items():
        process = zygote.start(words, folder, environment(folder) | {"GAMMA_FAULTS_STDOUT": str(folder / "stdout")})
        _, said = process.communicate(timeout=300)
        wanted = 2 if name.startswith("error") else 0
        line.expect(process.returncode == wanted, f"{name}: exit code {process.returncode}: {said[-300:]!r}")
        text = said + (folder / "stdout").read_text(errors="replace")
        line.expect(not STEERS.search(text), f"{name}: the terminal is steered: {text[-200:]!r}")
    _check_files(line, folder)
    after = {path for path in folder.parent.rglob("*") if folder not in path.parents}
    line.expect(after == before, f"files outside: {sorted(map(str, after - before))[:3]}")
    server = Server(zygote, folder, graph="f.jsonl")
    graph = server.call("/v1/graphs")["graphs"][0]["id"]
    import urllib.parse
    import urllib.request

    for name in clean[:8]:
        for path in ("/", f"/g/{graph}", f"/g/{graph}/search?q={urllib.parse.quote(name)}"):
            with urllib.request.urlopen(server.address + path, timeout=60) as answer:
                text = answer.read().decode()
            line.expect("<script>alert" not in text and "<img src=x" not in text, f"{path}: a name runs in the page")
    line.expect(server.end() == 0, server.said[-300:])


def _check_files(line: Line, folder: Path) -> None:
    import csv

    for name in ("p.csv", "c.csv"):
        with (folder / name).open(newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    is_number = re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)
                    line.expect(
                        not re.match(r"\s*[=@+\-]|[\t\r\n]", cell) or bool(is_number),
                        f"{name}: the cell {cell!r} is run",
                    )
    ElementTree.fromstring((folder / "e.svg").read_text())
    for name in ("e.svg", "e.html", "r.html"):
        text = (folder / name).read_text()
        line.expect("<script>alert" not in text and "<img src=x" not in text, f"{name}: a name runs in the page")
        line.expect(not STEERS.search(text.replace("\t", "")), f"{name}: a mark of direction or a control")


def _checkpoints(line: Line, folder: Path, zygote: Zygote) -> None:
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    from gamma_kg.nn.config import GammaConfig
    from gamma_kg.predicting.gamma import Gamma

    Gamma.from_config(GammaConfig(dim=8, num_layers=1)).save(folder / "sound.safetensors")
    with safe_open(folder / "sound.safetensors", framework="pt") as file:
        told, weights = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}
    config = json.loads(told["config"])
    absurd = [{"dim": 10**9}, {"dim": 10**17}, {"num_layers": 10**9}, {"mlp_hidden": 10**13}, {"attention_dim": 10**15},
              {"branches": ["real"] * 100_000}, {"dim": -8}, {"relation_layers": 10**9}]  # fmt: skip
    for number, change in enumerate(absurd):
        path = folder / f"config{number}.safetensors"
        save_file(weights, path, {**told, "config": json.dumps({**config, **change})})
    nan = {name: torch.full_like(tensor, float("nan")) for name, tensor in weights.items()}
    save_file(nan, folder / "nan.safetensors", told)
    header = (folder / "sound.safetensors").read_bytes()
    size = int.from_bytes(header[:8], "little")
    text = header[8 : 8 + size]
    (folder / "shape.safetensors").write_bytes(
        header[:8] + re.sub(rb'"shape":\[8,', b'"shape":[9,', text) + header[8 + size :]
    )
    (folder / "long.safetensors").write_bytes((1 << 60).to_bytes(8, "little") + text)
    (folder / "empty.safetensors").write_bytes(b"")
    torch.save({"model": {"relation_model.layers.0.linear.weight": torch.zeros(1).expand(10**9, 2)}}, folder / "a.pth")
    torch.save(
        {
            "model": {
                "relation_model.layers.0.linear.weight": torch.zeros(1).expand(10**9, 2),
                "entity_model.mlp.0.weight": torch.zeros(1).expand(10**9, 10**9),
            }
        },
        folder / "b.pth",
    )
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.pth")]):
        if path.name != "sound.safetensors":
            words = ["predict", "demo", "--head", "Kenya", "--relation", "borders", "--model", path.name]
            _refused(line, path.name, words, folder, zygote)
