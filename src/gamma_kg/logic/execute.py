"""Executes formulas: fuzzy sets, bottom up. All projections of the same height, of all formulas, are one batch.

A set that occurs twice, in one formula or in several, is computed once. N entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from gamma_kg.logic.formula import Along, And, Entity, Everything, Formula, Not, Or, height, walk
from gamma_kg.logic.fuzzy import LOGICS, Logic
from gamma_kg.logic.project import Operand, Projector
from gamma_kg.logic.traverse import as_membership


class Memberships:
    """The degree to which each entity belongs to the sets of some formulas; ask for any set of theirs."""

    def __init__(self, num_entities: int, logic: Logic) -> None:
        self.num_entities, self.logic = num_entities, logic
        self._projected: dict[Formula, Tensor] = {}

    def __getitem__(self, formula: Formula) -> Tensor:
        """(N,), each in 0..1."""
        if isinstance(formula, Along):
            return self._projected[formula]
        if isinstance(formula, Entity):
            member_N = torch.zeros(self.num_entities)
            member_N[int(formula.entity)] = 1
            return member_N
        if isinstance(formula, Everything):
            return torch.ones(self.num_entities)
        if isinstance(formula, Not):
            return 1 - self[formula.of]
        assert isinstance(formula, And | Or)
        join = self.logic.both if isinstance(formula, And) else self.logic.either
        return reduce(join, (self[part] for part in formula.members))

    def put(self, formula: Along, member_N: Tensor) -> None:
        self._projected[formula] = member_N


def execute(formulas: Sequence[Formula], projector: Projector, logic: Logic = LOGICS["product"]) -> Memberships:
    """The memberships of all sets of the formulas, whose entities and relations are ids."""
    steps: dict[int, dict[Along, None]] = {}  # dicts keep their order, so a batch is always made up alike
    for formula in formulas:
        for part in walk(formula):
            if isinstance(part, Along):
                steps.setdefault(height(part), {})[part] = None
    found = Memberships(projector.kg.num_entities, logic)
    for level in sorted(steps):
        batch = []
        for step in steps[level]:
            if isinstance(step.of, Everything):  # no entity to start from: what has such a fact at all
                everywhere = torch.arange(found.num_entities).numpy()
                reached = projector.follow(everywhere, int(step.relation))
                found.put(step, as_membership(reached, found.num_entities))
            else:
                batch.append(step)
        if batch:
            operands: list[Operand] = [
                int(step.of.entity) if isinstance(step.of, Entity) else found[step.of] for step in batch
            ]
            projected_BN = projector.project(operands, [int(step.relation) for step in batch])
            for step, member_N in zip(batch, projected_BN, strict=True):
                found.put(step, member_N)
    return found
