"""Files that GAMMA itself or a tool beside it wrote: sound examples of each, and what reads one."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

Examples = dict[str, bytes]

FACTS = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "Köln"), ("a", "s", "x y")]


@cache
def _graph() -> Any:
    from gamma_kg.graph.graph import KnowledgeGraph

    return KnowledgeGraph.from_triples(FACTS)


def written(act: Callable[[Path], object], *names: str) -> Examples:
    """What a function leaves in an empty folder, by place with @ for /; all of it, or the files of these names."""
    with tempfile.TemporaryDirectory() as folder:
        act(Path(folder))
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file() and not path.name.endswith(".lock")]
        found = {"@".join(path.relative_to(folder).parts): path.read_bytes() for path in paths}
    return {name: found[name] for name in names or found}


def laid_out(path: Path, sound: Examples, folder: str) -> Path:
    """The folder of the examples with one file in it as it is at `path`."""
    for name, content in sound.items():
        file = Path(folder, *name.split("@"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(path.read_bytes() if name == path.name else content)
    return Path(folder)


def store() -> Examples:
    return written(lambda folder: _graph().save(folder / "g.gamma"))


def open_store(path: Path, sound: Examples) -> None:
    """A store of which one file is damaged is used, and verifies itself."""
    from gamma_kg.graph.graph import KnowledgeGraph
    from gamma_kg.graph.store.facts import verify_store

    with tempfile.TemporaryDirectory() as folder:
        found = laid_out(path, sound, folder) / "g.gamma"
        verify_store(found)
        assert sorted(KnowledgeGraph.open(found)) == sorted(FACTS), "damage was not seen"


def checkpoint() -> Examples:
    from gamma_kg.nn.config import GammaConfig
    from gamma_kg.predicting.gamma import Gamma

    model = Gamma.from_config(GammaConfig(dim=8, num_layers=1))
    return written(lambda folder: model.save(folder / "m.safetensors"))


def load_checkpoint(path: Path) -> None:
    from gamma_kg.nn.checkpoint import load_checkpoint

    load_checkpoint(path).build()


def ultra_weights() -> Examples:
    """The names that a public file has, with small tensors."""
    import torch

    from gamma_kg.nn.checkpoint import _ultra_name
    from gamma_kg.nn.config import GammaConfig
    from gamma_kg.nn.model import GammaModel

    state = GammaModel(GammaConfig(branches=("real",), dim=4, num_layers=1)).state_dict()
    theirs = {}
    for name, tensor in state.items():
        for ours, their in (
            ("relation_encoder.", "relation_model."), ("branches.0.layers.", "entity_model.layers."),
            ("score.hidden.", "entity_model.mlp.0."), ("score.out.", "entity_model.mlp.2."),
            (".relation.", ".relation_projection."), (".norm.", ".layer_norm."),
        ):  # fmt: skip
            name = name.replace(ours, their)
        theirs[name] = tensor
    assert {_ultra_name(name) for name in theirs} == set(state)
    return written(lambda folder: torch.save({"model": theirs}, folder / "u.pth"))


def import_ultra(path: Path) -> None:
    from gamma_kg.nn.checkpoint import import_ultra

    import_ultra(path).build()


def journal() -> Examples:
    from gamma_kg.io.journal import Journal

    def write(folder: Path) -> None:
        record = Journal(folder / "j.progress", {"a": 1})
        for n in range(3):
            record.add({"answers": [[n]]})
        record.close()

    return written(write)


def take_up(path: Path) -> None:
    """What is taken up was written: the first blocks, as they were."""
    from gamma_kg.io.journal import Journal

    record = Journal(path, {"a": 1})
    record.close()
    assert record.blocks == [{"answers": [[n]]} for n in range(len(record.blocks))], record.blocks


def calibration() -> Examples:
    import numpy as np

    from gamma_kg.predicting.calibration import Calibration, MonotoneMap
    from gamma_kg.predicting.kept_calibrations import keep

    rising = MonotoneMap(np.array([-1.0, 0.5, 2.0]), np.array([0.1, 0.25, 0.9]))
    return written(lambda folder: keep(folder / "c.json", Calibration(rising, {0: rising}, 5, 7, 0.25, 0.125)))


def use_calibration(path: Path, sound: Examples) -> None:
    """As it was, or as if it were not there."""
    from gamma_kg.predicting.kept_calibrations import kept

    found = kept(path)
    if found is None:
        return
    path.write_bytes(sound[path.name])
    whole = kept(path)
    assert whole is not None and found.digest() == whole.digest(), "damage was not seen"


def verdicts() -> Examples:
    from gamma_kg.serve.review import Review

    def write(folder: Path) -> None:
        review = Review(folder / "v.jsonl")
        review.decide(("a", "r", "b"), "accepted", 0.5)
        review.decide(("a", "r", "Köln"), "rejected")
        review.close()

    return written(write)


def read_verdicts(path: Path) -> None:
    from gamma_kg.serve.review import Review

    review = Review(path)
    review.close()
    review.facts("accepted")


RESULT = {
    "format": "gamma-kg/result/1", "dataset": "nl-100", "group": "inductive-er", "split": "test", "task": "both",
    "limit": None, "key": "k", "leakage": "free", "queries": 10, "seconds": 1.5, "mrr": 0.5, "hits@1": 0.25,
    "hits@3": 0.5, "hits@10": 0.75, "mr": 5.0, "amri": 0.5, "fair": {"mrr": 0.5, "hits@10": 0.75},
    "tail": {"mrr": 0.5, "hits@1": 0.25, "hits@3": 0.5, "hits@10": 0.75},
    "model": {"name": "ours", "hash": "0123456789abcdef", "description": "made up", "trained_on": ["fb15k237"]},
    "by": {"halflink": {"both halves seen": {"queries": 4, "triples": 2, "mrr": 0.25, "hits@10": 0.5}}},
}  # fmt: skip


def results() -> Examples:
    """As they are written, and as earlier versions wrote them: without a checksum."""
    from gamma_kg.io.sealed import seal

    return {"r.json": json.dumps(seal(RESULT)).encode(), "old.json": json.dumps(RESULT).encode()}


def report(path: Path) -> None:
    from gamma_kg.report.render import FORMATS, render
    from gamma_kg.report.runs import load_runs

    runs = load_runs([path])
    for name in FORMATS:
        render(runs, name)


def ranks() -> Examples:
    import numpy as np

    from gamma_kg.evaluation.ranking import RivalCounts
    from gamma_kg.evaluation.store import Partial

    counts = RivalCounts(np.arange(9), np.zeros(9, dtype=np.int64), np.full(9, 20))
    return written(lambda folder: Partial(folder / "ranks" / "x.part0.npz", "k", counts, 1.5).save())


def take_over_ranks(path: Path, sound: Examples) -> None:
    """Ranks of an unfinished graph are as they were, or none is."""
    from gamma_kg.evaluation.ranking import UNRANKED
    from gamma_kg.evaluation.store import ResultStore

    with tempfile.TemporaryDirectory() as folder:
        above = ResultStore(laid_out(path, sound, folder)).partial("x", "test", "k", 9, 0).counts.above
        assert above.tolist() in (list(range(9)), [UNRANKED] * 9), f"damage was not seen: {above}"


def run_folder() -> Examples:
    import torch

    from gamma_kg.training.config import read_config
    from gamma_kg.training.run_folder import RunFolder

    def write(folder: Path) -> None:
        run = RunFolder(folder)
        run.start(read_config("ten-minutes"), resume=False)
        run.append({"kind": "train", "step": 1, "seconds": 1.5, "loss": 0.5, "learning_rate": 0.001})
        run.append({"kind": "validation", "step": 1, "seconds": 1.5, "mean": 0.5, "mrr": {"x": 0.5}})
        run.save_state({"model": {"w": torch.arange(6.0)}, "counters": {"step": 1}, "cursors": [[0, 0]]})

    return written(write, "config.json", "log.jsonl", "state.pt")


def resume(path: Path, sound: Examples) -> None:
    """Config, curves and state of a run; weights that differ from what was saved are refused."""
    from gamma_kg.training.curve import curves
    from gamma_kg.training.run_folder import RunFolder

    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(laid_out(path, sound, folder))
        run.config()
        curves(run)
        run.cut_log(1)
        assert run.load_state()["model"]["w"].tolist() == [0, 1, 2, 3, 4, 5], "damage was not seen"


def hashes() -> Examples:
    entry = json.dumps([{"slug": "nl-100", "files": {"train.txt": {"sha256": "0" * 64}}}]).encode()
    return {"MANIFEST.json": entry, "nl-100@sha256.json": json.dumps({"train.txt": "0" * 64}).encode()}


def read_hashes(path: Path, sound: Examples) -> None:
    from gamma_kg.data.benchmark import _recorded_hashes

    with tempfile.TemporaryDirectory() as folder:
        _recorded_hashes("nl-100", laid_out(path, sound, folder))


def query_set() -> Examples:
    from gamma_kg.logic.formula import Along, And, Entity, Not
    from gamma_kg.logic.query_sets import write_queries
    from gamma_kg.logic.sample import LogicalQuery

    chain = Along(1, Along(0, Entity(0)))
    queries = [_query(LogicalQuery, chain), _query(LogicalQuery, And((chain, Not(Along(0, Entity(1))))))]
    return written(lambda folder: write_queries(folder / "q.jsonl", queries, _graph(), {"seed": 0}))


def _query(kind: Any, formula: object) -> Any:
    import numpy as np

    return kind("2p", "classic", formula, np.array([1]), np.array([2]))


def betae() -> Examples:
    chain, denied = {(0, (0, 2))}, {((0, (0,)), (1, (1, -2)))}
    queries = defaultdict(set, {("e", ("r", "r")): chain, (("e", ("r",)), ("e", ("r", "n"))): denied})
    answers = {query: {1, 2} for part in queries.values() for query in part}
    contents: dict[str, Any] = {
        "test-queries": queries, "test-easy-answers": defaultdict(set, answers), "test-hard-answers": answers,
        "id2ent": dict(enumerate("abc")), "id2rel": {0: "+r", 1: "-r", 2: "+s"},
    }  # fmt: skip
    return {
        f"{name}.pkl": pickle.dumps(content, protocol=2 + i % 3) for i, (name, content) in enumerate(contents.items())
    }


def read_set(path: Path) -> None:
    from gamma_kg.logic.query_sets import read_query_set

    read_query_set(path, _graph())


def read_betae(path: Path, sound: Examples) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read_set(laid_out(path, sound, folder))


QUESTION = (
    b'PREFIX x: <http://e.org/>\nSELECT ?y WHERE { <a> <r>/^<s> ?y . { ?y x:p "Ann" } UNION { ?y <r> <b> } } LIMIT 5'
)


def ask(path: Path) -> None:
    from gamma_kg.logic.sparql import parse_sparql

    parse_sparql(path.read_bytes().decode("utf-8", "replace"))


def endpoint() -> Examples:
    row = {"s": {"type": "uri", "value": "x:a"}, "p": {"type": "uri", "value": "x:p"}}
    rows = [
        {**row, "o": {"type": "literal", "value": "v", "xml:lang": "en"}},
        {**row, "o": {"type": "bnode", "value": "b"}},
    ]
    return {"a.json": json.dumps({"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": rows}}).encode()}


def read_answer(path: Path) -> None:
    from gamma_kg.data import sparql

    content, before = path.read_bytes(), sparql._fetch
    sparql._fetch = lambda *_: content
    try:
        sparql._page("http://e.org", "", None)  # type: ignore[arg-type]
    finally:
        sparql._fetch = before


def _in_folder(examples: Callable[[], Examples], read: Callable[[Path, Examples], None]) -> tuple[Any, Any]:
    made = cache(examples)
    return made, lambda path: read(path, made())


# Name → what makes its examples, and what reads one.
OWN_FILES: dict[str, tuple[Callable[[], Examples], Callable[[Path], object]]] = {
    "checkpoint": (checkpoint, load_checkpoint),
    "ULTRA weights": (ultra_weights, import_ultra),
    "journal": (journal, take_up),
    "store": _in_folder(store, open_store),
    "result": (results, report),
    "ranks": _in_folder(ranks, take_over_ranks),
    "run folder": _in_folder(run_folder, resume),
    "calibration": _in_folder(calibration, use_calibration),
    "verdicts": (verdicts, read_verdicts),
    "hashes": _in_folder(hashes, read_hashes),
    "query set": (query_set, read_set),
    "BetaE folder": _in_folder(betae, read_betae),
    "SPARQL question": (lambda: {"q.rq": QUESTION}, ask),
    "SPARQL answer": (endpoint, read_answer),
}
