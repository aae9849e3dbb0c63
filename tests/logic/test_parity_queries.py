"""Fuzzy answers agree with the official executor of UltraQuery, all 14 shapes, both checkpoints."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.logic.execute import execute
from gamma_kg.logic.lists import SHAPES, from_lists, shape_of
from gamma_kg.logic.predicted import ModelProjection
from gamma_kg.nn.checkpoint import import_ultra


def stored(shared: Path, name: str) -> tuple[KnowledgeGraph, dict[str, np.ndarray]]:
    with np.load(shared / "parity" / f"ultraquery-{name}.npz") as arrays:
        found = dict(arrays)
    sizes = int(found["num_entities"]), int(found["num_relations"])
    names = [[str(i) for i in range(size)] for size in sizes]
    return KnowledgeGraph(found["triples"], *names, keep_duplicates=True), found


@pytest.mark.parametrize("name", ["tiny", "nl-100"])
@pytest.mark.parametrize(
    ("checkpoint", "key"), [("ultraquery.pth", "prob"), ("ultra_3g.pth", "prob_ultra_3g_threshold_08")]
)
def test_probabilities_are_those_of_the_official_executor(name: str, checkpoint: str, key: str, shared: Path) -> None:
    kg, expected = stored(shared, name)
    formulas = [from_lists(json.loads(str(query))) for query in expected["query"]]
    assert [shape_of(formula) for formula in formulas] == expected["query_type"].tolist()
    assert set(expected["query_type"].tolist()) == set(SHAPES)
    gamma = Gamma.from_checkpoint(import_ultra(shared / "parity" / checkpoint))
    found = execute(formulas, ModelProjection(gamma, kg))
    for formula, shape, prob_N in zip(formulas, expected["query_type"], expected[key], strict=True):
        torch.testing.assert_close(
            found[formula], torch.from_numpy(prob_N), atol=1e-4, rtol=0, msg=f"{shape} {formula}"
        )
