"""Query sets on disk: ours, BetaE's, and hostile ones."""

import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from slow_executor import random_triples

from gamma_kg import DataError, KnowledgeGraph
from gamma_kg.logic.formula import Along, And, Entity, Not
from gamma_kg.logic.pickles import read_pickle
from gamma_kg.logic.query_sets import read_query_set, write_queries
from gamma_kg.logic.sample import Facts, sample_queries


@pytest.fixture
def kg() -> KnowledgeGraph:
    triples = random_triples(5, 25, 4, 160)
    return KnowledgeGraph(triples[::2], [f"entity {i}" for i in range(25)], ["a", "^odd", "c d", "e"])


def test_a_set_comes_back_as_it_was_written(kg: KnowledgeGraph, tmp_path: Path) -> None:
    facts = Facts(kg.triples.numpy(), random_triples(5, 25, 4, 160), 25, 4)
    queries = sample_queries(facts, 2) + sample_queries(facts, 2, balance="unseen")
    path = tmp_path / "set.jsonl"
    write_queries(path, queries, kg, {"seed": 0})
    first = path.read_bytes()
    found = read_query_set(path, kg)
    for one, other in zip(queries, found, strict=True):
        assert (one.shape, one.balance, one.formula) == (other.shape, other.balance, other.formula)
        for part in ("easy", "hard", "unseen"):
            assert np.array_equal(getattr(one, part), getattr(other, part))
    write_queries(path, found, kg, {"seed": 0})
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: expected a JSON object"),
        ("[1]", "line 2: expected an object"),
        ('{"format": "other"}', "line 2: expected an object of gamma-kg/queries/1"),
        ('{"query": [0, ["a"]]}', "line 2: hard missing"),
        ('{"query": [0, ["b"]], "hard": []}', "line 2: no relation is named 'b'"),
        ('{"query": [0, ["a"]], "hard": ["entity 99"]}', "line 2: no entity is named"),
        ('{"query": [0, ["a"]], "hard": 3}', "line 2: answers are a list"),
        ('{"query": [0], "hard": []}', "line 2: .* is no chain"),
        ('{"query": [0, ["a"]], "hard": [], "balance": "x"}', "line 2: balance must be one of"),
    ],
)
def test_a_damaged_set_names_the_line(line: str, said: str, kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"query": [3, ["a"]], "hard": [1]}\n' + line + "\n")
    with pytest.raises(DataError, match=said):
        read_query_set(path, kg)


def betae_folder(folder: Path, protocol: int) -> None:
    query = (3, (0, 3))
    denied = ((1, (2,)), (4, (1, -2)))
    answers: defaultdict[object, set[int]] = defaultdict(set)
    answers[query] = {5, 6}
    structures = {("e", ("r", "r")): {query}, (("e", ("r",)), ("e", ("r", "n"))): {denied}}
    contents = {
        "test-queries": structures,
        "test-easy-answers": answers,
        "test-hard-answers": defaultdict(set, {query: {7}, denied: {8}}),
        "id2ent": {i: f"entity {i}" for i in range(25)},
        "id2rel": {0: "+a", 1: "-a", 2: "+c d", 3: "-c d"},
    }
    for name, content in contents.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(content, protocol=protocol))


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_betae_folder_is_read_by_names(protocol: int, kg: KnowledgeGraph, tmp_path: Path) -> None:
    betae_folder(tmp_path, protocol)
    chain, denied = read_query_set(tmp_path, kg)
    assert chain.shape == "2p" and chain.formula == Along(2 + 4, Along(0, Entity(3)))
    assert chain.easy.tolist() == [5, 6] and chain.hard.tolist() == [7]
    assert denied.shape == "2in" and denied.formula == And((Along(2, Entity(1)), Not(Along(0 + 4, Entity(4)))))
    assert denied.easy.tolist() == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test-queries", {("e", ("r",)): 5}),
        ("test-queries", {1: {(2, 3), (2, (3,))}}),
        ("test-easy-answers", {(3, (0, 3)): {(1,)}}),
    ],
)
def test_a_betae_folder_with_something_else_in_it_is_one_error(
    name: str, content: object, kg: KnowledgeGraph, tmp_path: Path
) -> None:
    betae_folder(tmp_path, 4)
    (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=rf"{name}.pkl should hold sets"):
        read_query_set(tmp_path, kg)


def test_a_folder_without_the_files_says_which(kg: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"test-queries\.pkl, test-easy-answers\.pkl"):
        read_query_set(tmp_path, kg)


class _Call:
    def __init__(self, function: object, *arguments: object) -> None:
        self._made = function, arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self._made  # type: ignore[return-value]


def test_hostile_pickles_are_refused_and_run_nothing(tmp_path: Path) -> None:
    import os
    import subprocess

    trap = tmp_path / "trap"
    for attack in (
        _Call(os.system, f"touch {trap}"),
        _Call(subprocess.check_output, ["touch", str(trap)]),
        _Call(eval, f"open({str(trap)!r}, 'w')"),
        _Call(getattr, {}, "clear"),
        _Call(Path, str(trap)),
        np.zeros(3),
    ):
        for protocol in range(6):
            path = tmp_path / "attack.pkl"
            path.write_bytes(pickle.dumps({1: {2}, 3: attack}, protocol=protocol))
            with pytest.raises(DataError, match="only numbers, texts, tuples, sets and dicts are read"):
                read_pickle(path)
    assert not trap.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps({1: 2})[:-3],
        pickle.dumps(1.5),
        pickle.dumps({1: None}),
        pickle.dumps(set),
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x80\x02]q\x00h\x00a.",  # a list that holds itself
        b"P0\n.",  # an object outside the file
        b"\x82\x01.",  # one of the registry of extensions
        b"\x80\x02K\x01" + 60 * b"q\x00h\x00\x86" + b".",  # 2^60 numbers in 200 bytes
        b"\x80\x02}K\x01" + 60 * b"q\x00h\x00\x86" + b"K\x01s.",  # the same to be hashed
        b"\x80\x02}K\x01" + 10**5 * b"\x85" + b"K\x01s.",  # deeper than the stack of the processor
        b"\x80\x02]q\x00]h\x00a0K\x01a.",  # a list that is added to after it was put into another
        b"\x80\x02cbuiltins\nset\nK\x01\x85R.",  # a set of a number
    ],
)
def test_damaged_and_foreign_pickles_are_one_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"was not read|is damaged"):
        read_pickle(path)


def test_plain_pickles_come_back_as_plain_containers(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(defaultdict(set, {(1, (2, -2)): {3}, "e": frozenset({4})}), protocol=2))
    found = read_pickle(path)
    assert found == {(1, (2, -2)): {3}, "e": {4}} and type(found) is dict
