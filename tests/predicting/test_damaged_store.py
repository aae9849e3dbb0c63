"""A store too large to be read on opening, with bytes that changed: an error that says so or an answer, no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gamma_kg import DataError, Gamma, GammaError, KnowledgeGraph
from gamma_kg.graph.store import facts as stored_facts
from gamma_kg.predicting import background
from gamma_kg.rules import rules


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small one that is treated as a large one is."""
    rng = np.random.default_rng(0)
    ends, relation = rng.integers(300, size=(2000, 2)), rng.integers(12, size=2000)
    triples = [(f"e{h}", f"r{r}", f"e{t}") for (h, t), r in zip(ends, relation, strict=True)]
    KnowledgeGraph.from_triples(triples).save(tmp_path / "large.gamma")
    for module, name in (
        (stored_facts, "VERIFIED_BYTES"),
        (rules, "MOST_FACTS"),
        (background, "WHOLE_TRIPLES"),
    ):
        monkeypatch.setattr(module, name, 0)
    return tmp_path / "large.gamma"


@pytest.mark.parametrize("changed", [b"\xff" * 8, b"\x00" * 8, b"\x7f"])
def test_changed_bytes_bring_no_traceback(store: Path, small_gamma: Gamma, changed: bytes) -> None:
    refused = set()
    for array in sorted(store.glob("*/*.bin")):
        content = array.read_bytes()
        for place in (0.0, 0.3, 0.9):
            at = int(place * len(content))
            array.unlink()  # what is mapped already stays
            array.write_bytes((content[:at] + changed + content[at + len(changed) :])[: len(content)])
            try:
                kg = KnowledgeGraph.open(store)
                small_gamma.predict(kg, head="e1", relation="r1", local=300)
                small_gamma.predict(kg, tail="e2", relation="r2", local=300)
            except GammaError:
                refused.add(array.name)
        array.unlink()
        array.write_bytes(content)
    assert changed != b"\xff" * 8 or {"edges.neighbour.bin", "edges.node_ptr.bin", "relation.offset.bin"} <= refused


def test_groups_of_the_source_that_are_nowhere_are_told(store: Path, small_gamma: Gamma) -> None:
    source = KnowledgeGraph.open(store).entity_id("e1")
    array = next(store.glob("*/edges.node_ptr.bin"))
    starts = np.fromfile(array, dtype=np.int64)
    starts[source + 1] = 1 << 40
    array.unlink()
    starts.tofile(array)
    kg = KnowledgeGraph.open(store)
    with pytest.raises(DataError, match="groups of a node are out of range"):
        kg.edges.degrees(torch.tensor([source]))
    with pytest.raises(DataError, match="out of range"):
        small_gamma.predict(kg, head="e1", relation="r1", local=300)


def test_a_small_store_is_compared_with_its_hashes(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = next(store.glob("*/edges.group_type.bin"))
    array.write_bytes(array.read_bytes()[:-4] + b"\x01\x00\x00\x00")  # another relation, within all bounds
    KnowledgeGraph.open(store)
    monkeypatch.setattr(stored_facts, "VERIFIED_BYTES", 1 << 20)
    with pytest.raises(DataError, match=r"group_type\.bin: changed since it was written"):
        KnowledgeGraph.open(store)
