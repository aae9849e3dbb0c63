"""What logical queries are timed against computes the same."""

import torch

from gamma_kg import Gamma, KnowledgeGraph, entity
from gamma_kg.bench.torch_steps import TorchSteps
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import resolve
from gamma_kg.logic.predicted import ULTRAQUERY, ModelProjection


def test_steps_by_torch_are_those_of_the_engine(family: KnowledgeGraph) -> None:
    gamma = Gamma.from_preset("ultra")
    formulas = [
        resolve(entity(name).along("mother of").against("father of").along("sibling of"), family)
        for name in family.entities[:9]  # one more than a batch
    ]
    ours = execute(formulas, ModelProjection(gamma, family, ULTRAQUERY, local="off"))
    theirs = execute(formulas, TorchSteps(gamma.model, family))
    for formula in formulas:
        assert torch.allclose(ours[formula], theirs[formula], atol=1e-5)
