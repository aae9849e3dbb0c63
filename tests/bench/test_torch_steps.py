"""What logical queries are timed against computes the same."""

import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph, entity
from gamma_kg.bench.torch_steps import Sums, TorchSteps, by_scatter
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import resolve
from gamma_kg.logic.predicted import ULTRAQUERY, ModelProjection


@pytest.mark.parametrize("sums", [None, by_scatter])
def test_steps_by_torch_are_those_of_the_engine(family: KnowledgeGraph, sums: Sums | None) -> None:
    gamma = Gamma.from_preset("ultra")
    formulas = [
        resolve(entity(name).along("mother of").against("father of").along("sibling of"), family)
        for name in family.entities[:9]  # one more than a batch
    ]
    ours = execute(formulas, ModelProjection(gamma, family, ULTRAQUERY, local="off"))
    theirs = execute(formulas, TorchSteps(gamma.model, family, sums))
    for formula in formulas:
        assert torch.allclose(ours[formula], theirs[formula], atol=1e-5)
