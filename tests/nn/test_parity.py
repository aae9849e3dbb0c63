"""Scores of the public ULTRA weights against those of the official code.

The small graphs are in tests/golden; two real graphs and the checkpoint as published are in ../shared/parity.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.nn.checkpoint import import_ultra, load_checkpoint, save_checkpoint

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
SMALL, REAL = ("tiny", "tiny_edge"), ("nl-100", "codex-s")


@pytest.fixture(scope="module")
def ultra() -> Gamma:
    return Gamma.from_pretrained(GOLDEN / "ultra_3g.safetensors")


@pytest.fixture(scope="module", params=[*SMALL, *REAL])
def golden(request: pytest.FixtureRequest) -> tuple[Any, KnowledgeGraph]:
    folder = GOLDEN if request.param in SMALL else request.getfixturevalue("shared") / "parity"
    stored = np.load(folder / f"{request.param}.npz")
    entities = [str(i) for i in range(int(stored["num_entities"]))]
    relations = [str(i) for i in range(int(stored["num_relations"]))]
    return stored, KnowledgeGraph(stored["triples"], entities, relations, keep_duplicates=True)


def test_importing_the_published_file_and_our_format_change_no_weight(
    ultra: Gamma, shared: Path, tmp_path: Path
) -> None:
    imported = import_ultra(shared / "parity" / "ultra_3g.pth")
    save_checkpoint(tmp_path / "ultra.safetensors", imported.build(), imported.provenance)
    again = Gamma.from_checkpoint(load_checkpoint(tmp_path / "ultra.safetensors"))
    assert again.fingerprint() == ultra.fingerprint()


def test_the_public_weights_have_the_published_size(ultra: Gamma) -> None:
    assert ultra.num_parameters == 168_705


def test_relation_graph_edges_are_equal(golden: tuple[Any, KnowledgeGraph]) -> None:
    stored, kg = golden
    ours = torch.stack(kg.relation_graph.slice(0, kg.relation_graph.num_edges))
    row, column = stored["rel_edge_index"]
    theirs = np.stack((row, stored["rel_edge_type"], column))
    assert sorted(map(tuple, ours.T.tolist())) == sorted(map(tuple, theirs.T.tolist()))


def test_relation_states_agree(ultra: Gamma, golden: tuple[Any, KnowledgeGraph]) -> None:
    stored, kg = golden
    relation = torch.from_numpy(stored["queries"][:, 1])
    with torch.no_grad():
        states = ultra.model.relation_states(kg.relation_graph, kg.edges.inverse, relation)
    torch.testing.assert_close(
        states.state_URQ[states.which_B], torch.from_numpy(stored["relation_reps"]), rtol=0, atol=1e-4
    )


def test_scores_of_tail_and_head_queries_agree(ultra: Gamma, golden: tuple[Any, KnowledgeGraph]) -> None:
    stored, kg = golden
    source, relation = torch.from_numpy(stored["queries"]).T
    assert (relation >= kg.num_relations).any() and (relation < kg.num_relations).any()
    scores = ultra.scores(kg, source, relation)
    torch.testing.assert_close(scores, torch.from_numpy(stored["scores"]), rtol=0, atol=1e-4)


def test_scores_in_double_precision_agree_to_nine_digits(ultra: Gamma, golden: tuple[Any, KnowledgeGraph]) -> None:
    stored, kg = golden
    exact = Gamma(import_ultra_double(ultra))
    scores = exact.scores(kg, *torch.from_numpy(stored["queries"][:4]).T)
    torch.testing.assert_close(scores, torch.from_numpy(stored["scores_f64"][:4]), rtol=0, atol=1e-9)


def import_ultra_double(ultra: Gamma) -> Any:
    from copy import deepcopy

    return deepcopy(ultra.model).double()


@pytest.mark.parametrize("name", SMALL)
def test_states_of_every_layer_agree(ultra: Gamma, name: str) -> None:
    stored = np.load(GOLDEN / f"{name}.npz")
    entities, relations = (list(map(str, range(int(stored[key])))) for key in ("num_entities", "num_relations"))
    kg = KnowledgeGraph(stored["triples"], entities, relations, keep_duplicates=True)
    source, relation = torch.from_numpy(stored["queries"]).T
    seen: list[torch.Tensor] = []
    layers = ultra.model.branches[0].layers  # type: ignore[union-attr]
    handles = [layer.register_forward_hook(lambda _m, _i, out: seen.append(out)) for layer in layers]  # type: ignore[union-attr]
    try:
        ultra.model(kg.edges, kg.relation_graph, Starts.single(source), relation)
    finally:
        for handle in handles:
            handle.remove()
    states = torch.stack(seen, dim=1).detach()
    torch.testing.assert_close(states, torch.from_numpy(stored["entity_states"][:, 1:]), rtol=0, atol=1e-4)
