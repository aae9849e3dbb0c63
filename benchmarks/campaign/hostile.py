"""Input made to do harm: bombs, servers that never end, names that steer a terminal or a page, absurd checkpoints."""

from __future__ import annotations

import csv
import json
import re
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

from campaign.bombs import bombs
from campaign.hostile_callers import questions, requests
from campaign.hostile_servers import contexts, databases, endpoints
from campaign.jobs import environment
from campaign.killed_server import Server
from campaign.lines import Effort, Line
from campaign.refusing import refused
from campaign.setting import Attempt, Setting
from campaign.zygote import Zygote

EVIL = (
    "<script>alert(1)</script>", "</svg><script>x", "=cmd()|' /C calc'!A0", "@SUM(1)", "+1+cmd()", "../../x",
    "..\\..\\x", "/etc/passwd", "\x1b[2J\x1b]0;owned\x07", "safe\u202eexe.txt", "a\u2066b\u2069",
    "'\"><img src=x onerror=alert(1)>",
    "{{7*7}}", "${jndi:ldap://x}", "javascript:alert(1)", "\x00nul", "line\u2028two", "%00%2e%2e", "CON", "--out", "-x",
)  # fmt: skip
# What steers a terminal: controls but for line ends and tabs, and marks of direction.
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# What is sent back as it is stands in the fields of a form; a browser keeps a field's direction of writing inside it.
FIELDS = re.compile(r' value="[^"]*"|<textarea.*?</textarea>', re.DOTALL)


def hostile_input(effort: Effort) -> dict[str, Attempt]:
    return {name: _in_a_folder(tried) for name, tried in TRIED.items()}


def _in_a_folder(tried: Callable[[Line, Path, Zygote], None]) -> Attempt:
    """In a folder that lies in an empty one: what is written beside it is seen."""

    def attempt(line: Line, setting: Setting) -> None:
        place = setting.folder / "place"
        place.mkdir()
        tried(line, place, setting.zygote)

    return attempt


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
    relation = urllib.parse.quote(rows[0][1])
    for name in clean:
        q = urllib.parse.quote(name)
        sparql = urllib.parse.quote(f"SELECT ?x {{ <{name}> <plain> ?x }}")
        for path in ("/", f"/g/{graph}", f"/g/{graph}/search?q={q}", f"/g/{graph}/entity?name={q}",
                     f"/g/{graph}/ask?head={q}&relation=plain", f"/g/{graph}/why?head={q}&relation=plain&tail={q}",
                     f"/g/{graph}/relation?name={relation}", f"/g/{graph}/question?sparql={sparql}",
                     f"/g/{graph}/missing?entity={q}", f"/g/{graph}/nowhere?{q}"):  # fmt: skip
            request = urllib.request.Request(server.address + path, headers={"Accept": "text/html"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    text, code = answer.read().decode(), answer.status
            except urllib.error.HTTPError as refused:
                text, code = refused.read().decode(), refused.code
            line.expect(code < 500, f"{path}: HTTP {code}")
            line.expect("<script>alert" not in text and "<img src=x" not in text, f"{path}: a name runs in the page")
            shown = FIELDS.sub("", text)
            line.expect(not STEERS.search(shown), f"{path}: a mark of direction or a control")
    line.expect(server.end() == 0, server.said[-300:])


def _check_files(line: Line, folder: Path) -> None:
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
            refused(line, path.name, words, folder, zygote)


TRIED: dict[str, Callable[[Line, Path, Zygote], None]] = {
    "bombs": bombs,
    "remote JSON-LD contexts": contexts,
    "SPARQL endpoints that do harm": endpoints,
    "Neo4j databases that do harm": databases,
    "questions that do harm": questions,
    "requests that do harm": requests,
    "evil names in every output": _names,
    "absurd checkpoints": _checkpoints,
}
