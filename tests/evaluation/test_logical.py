"""A set of logical queries is answered in batches: which come together, and that it changes no result."""

from collections.abc import Sequence

import numpy as np
import pytest
from torch import Tensor

from gamma_kg import KnowledgeGraph
from gamma_kg.evaluation import logical
from gamma_kg.logic.formula import Along, And, Entity, Everything, Not, beginning
from gamma_kg.logic.project import Operand, Traversal
from gamma_kg.logic.sample import LogicalQuery

TRIPLES = [(0, 0, 1), (1, 1, 2), (1, 1, 3), (2, 0, 3), (3, 1, 0), (0, 1, 2), (4, 0, 0)]


@pytest.fixture
def kg() -> KnowledgeGraph:
    return KnowledgeGraph(np.array(TRIPLES), list("abcde"), ["r", "s"])


class Counted(Traversal):
    steps = 0

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        self.steps += len(operands)
        return super().project(operands, relations)


def query(entity: int, relations: list[int], hard: int) -> LogicalQuery:
    return LogicalQuery(
        "2p", "classic", Entity(entity).along(*relations), np.array([], int), np.array([hard]), np.array([], int)
    )


def test_queries_that_begin_alike_share_their_first_steps_however_the_set_is_ordered(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins = [(0, 0), (1, 1), (0, 0), (1, 1), (0, 0), (1, 1)]
    queries = [
        query(entity, [first, last], 4) for (entity, first), last in zip(begins, [0, 0, 1, 1, 2, 2], strict=True)
    ]
    together = Counted(kg)
    wanted = logical.evaluate_queries(queries, together)
    assert together.steps == 2 + 6
    monkeypatch.setattr(logical, "LARGEST_BATCH", 3)
    apart = Counted(kg)
    found = logical.evaluate_queries(queries, apart)
    assert apart.steps == 2 + 6  # in the order of the set it would be 4 + 6
    assert found["classic"] == wanted["classic"]


def test_the_beginning_of_a_formula_is_the_way_up_its_first_branch() -> None:
    chain = Along(2, And((Entity(7).along(3, 1), Not(Entity(8).along(0)))))
    assert beginning(chain) == (7, 3, 1, 2)
    assert beginning(Along(5, Everything())) == (-1, 5)
