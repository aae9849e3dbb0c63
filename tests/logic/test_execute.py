"""The executor: which projections run together, and how degrees are joined."""

from collections.abc import Sequence

import pytest
import torch
from slow_executor import Slow, random_triples
from torch import Tensor

from gamma_kg import ConfigError, Gamma, KnowledgeGraph
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import Along, Entity, Everything
from gamma_kg.logic.fuzzy import LOGICS, logic_named
from gamma_kg.logic.lists import SHAPES
from gamma_kg.logic.predicted import ModelProjection, StepOptions, degrees, even_chance, starts_of
from gamma_kg.logic.project import Frequency, Operand, Projector, Traversal
from gamma_kg.logic.sample import Facts, sample_queries
from gamma_kg.logic.usual_answers import usual_answers
from gamma_kg.nn.model import RelationStates


@pytest.fixture
def kg() -> KnowledgeGraph:
    triples = random_triples(5, 25, 4, 100)
    return KnowledgeGraph(triples, [str(i) for i in range(25)], list("abcd"))


class Counting(Projector):
    """Gives every entity a tenth of its operand's sum, and counts the batches."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        super().__init__(kg)
        self.batches: list[list[int]] = []

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        self.batches.append(list(relations))
        weights = [float(operand.sum()) if isinstance(operand, Tensor) else 1.0 for operand in operands]
        return torch.tensor(weights)[:, None].expand(-1, self.kg.num_entities) / 50


def test_projections_of_one_height_are_one_batch_and_a_repeated_set_runs_once(kg: KnowledgeGraph) -> None:
    projector = Counting(kg)
    shared = Entity(1).along(0)
    execute([shared.along(1, 2), shared & Entity(2).along(3), shared.along(1) | Entity(1).along(0)], projector)
    assert projector.batches == [[0, 3], [1], [2]]


@pytest.mark.parametrize(
    ("name", "both", "either"), [("product", 0.12, 0.58), ("godel", 0.3, 0.4), ("lukasiewicz", 0.0, 0.7)]
)
def test_logics_join_degrees_as_worked_by_hand(name: str, both: float, either: float) -> None:
    x, y = torch.tensor([0.3]), torch.tensor([0.4])
    assert LOGICS[name].both(x, y).item() == pytest.approx(both)
    assert LOGICS[name].either(x, y).item() == pytest.approx(either)


@pytest.mark.parametrize("name", LOGICS)
def test_every_logic_is_the_plain_one_on_zero_and_one(name: str) -> None:
    x, y = torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 0.0, 1.0])
    assert LOGICS[name].both(x, y).tolist() == [0, 0, 0, 1]
    assert LOGICS[name].either(x, y).tolist() == [0, 1, 1, 1]


def test_an_unknown_logic_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'godel'"):
        logic_named("goedel")


@pytest.mark.parametrize("name", LOGICS)
def test_traversal_in_the_executor_gives_the_answers_of_the_slow_one(name: str, kg: KnowledgeGraph) -> None:
    triples = kg.triples.numpy()
    slow = Slow(triples, 25, 4)
    queries = sample_queries(Facts(triples[::2], triples, 25, 4), 2)
    assert {query.shape for query in queries} == set(SHAPES)
    found = execute([query.formula for query in queries], Traversal(kg), LOGICS[name])
    for query in queries:
        assert set(found[query.formula].nonzero()[:, 0].tolist()) == slow.answers(query.formula)


def test_frequency_ignores_where_one_starts(kg: KnowledgeGraph) -> None:
    found = execute([Entity(1).along(0), Entity(7).along(0)], Frequency(kg))
    assert torch.equal(found[Entity(1).along(0)], found[Entity(7).along(0)])
    assert found[Entity(1).along(0)].max() == 1


def test_going_on_from_everything_is_what_has_such_a_fact(kg: KnowledgeGraph) -> None:
    found = execute([Everything().along(2)], Counting(kg))[Everything().along(2)]
    assert set(found.nonzero()[:, 0].tolist()) == set(kg.triples[kg.triples[:, 1] == 2][:, 2].tolist())


def test_sets_become_weighted_starts_above_the_threshold() -> None:
    starts = starts_of([3, torch.tensor([0.0, 0.5, 0.9, 0.2])], threshold=0.2)
    assert starts.node_S.tolist() == [3, 1, 2] and starts.offset_B1.tolist() == [0, 1, 3]
    assert starts.weight_S is not None and starts.weight_S.tolist() == pytest.approx([1, 0.5, 0.9])
    assert starts_of([3, 4], threshold=0.2).is_single


def test_the_weights_of_a_set_add_up_to_one_at_most() -> None:
    sets = [torch.tensor([0.5, 0.5, 1.0, 0.0]), torch.tensor([0.0, 0.2, 0.0, 0.0]), 3]
    starts = starts_of(sets, threshold=0.0, unit=True)
    assert starts.weight_S is not None
    assert starts.weight_S.tolist() == pytest.approx([0.25, 0.25, 0.5, 0.2, 1.0])


def test_a_share_stands_for_an_even_chance() -> None:
    score = torch.tensor([[0.7, 0.2, 0.1]]).log() + 5
    assert degrees(score, torch.tensor([0.1]))[0].tolist() == pytest.approx([0.7 / 0.8, 0.2 / 0.3, 0.1 / 0.2])
    assert degrees(score, None)[0].tolist() == pytest.approx(score.sigmoid()[0].tolist())


def test_an_answer_needs_less_of_the_scores_where_a_relation_has_more_answers() -> None:
    """Three countries border two, four and no others; each has one capital."""
    borders = [("A", "borders", other) for other in "BC"] + [("D", "borders", other) for other in "ABCE"]
    kg = KnowledgeGraph.from_triples([*borders, ("A", "capital", "a"), ("D", "capital", "d")])
    borders_id, capital = kg.relation_id("borders"), kg.relation_id("capital")
    asked = torch.tensor([borders_id, capital, borders_id + kg.num_relations])
    assert usual_answers(kg)[asked].tolist() == pytest.approx([3, 1, 6 / 4])
    found = even_chance(kg, asked, StepOptions(share=0.3))
    assert found is not None and found.tolist() == pytest.approx([0.1, 0.3, 0.2])
    assert even_chance(kg, asked, StepOptions(share=None)) is None
    alike = even_chance(kg, asked, StepOptions(share=0.3, usual=False))
    assert alike is not None and alike.tolist() == pytest.approx([0.3] * 3)


def test_facts_are_believed_to_the_degree_of_where_they_lead_from(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    parents = family.relation_id("mother of"), family.relation_id("father of")
    ann, eve = family.entity_id("Ann"), family.entity_id("Eve")
    start = torch.zeros(family.num_entities)
    start[ann], start[eve] = 1.0, 0.62
    bare, believed = (
        ModelProjection(small_gamma, family, StepOptions(facts=facts)).project([start, ann], [parents[0], parents[0]])
        for facts in (False, True)
    )
    bob, cleo, finn = (family.entity_id(name) for name in ("Bob", "Cleo", "Finn"))
    for child in (bob, cleo):
        assert believed[0, child] == 1 and believed[1, child] == 1
    assert believed[0, finn] == max(0.6, float(bare[0, finn]))
    others = [i for i in range(family.num_entities) if i not in (bob, cleo, finn)]
    assert torch.equal(bare[:, others], believed[:, others])


def test_a_batch_gives_what_each_query_gives_alone(kg: KnowledgeGraph, small_gamma: Gamma) -> None:
    triples = kg.triples.numpy()
    formulas = [query.formula for query in sample_queries(Facts(triples[::2], triples, 25, 4), 1)]
    projector = ModelProjection(small_gamma, kg)
    together = execute(formulas, projector)
    for formula in formulas:
        torch.testing.assert_close(execute([formula], projector)[formula], together[formula], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("direct", "condition"), [(True, 2), (False, 6)])
def test_a_step_back_is_conditioned_on_the_direct_relation_or_on_the_asked_one(
    kg: KnowledgeGraph, small_gamma: Gamma, direct: bool, condition: int
) -> None:
    step, options = Along(2 + 4, Entity(3)), StepOptions(facts=False, share=None, direct=direct)
    found = execute([step], ModelProjection(small_gamma, kg, options))[step]
    model, relation = small_gamma.model, torch.tensor([6])
    with torch.no_grad():
        states = model.encode_relations(kg.relation_graph, torch.tensor([condition]))
        conditioned = RelationStates(states, torch.tensor([0]))
        score = model.score_entities(kg.edges, conditioned, starts_of([3], 0), relation).score_BC[0]
    torch.testing.assert_close(found, score.sigmoid())


@pytest.mark.parametrize("options", [{"threshold": 1.0}, {"threshold": -0.1}, {"share": 0.0}, {"share": 1.5}])
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"lies in 0\.\.1"):
        StepOptions(**options)  # type: ignore[arg-type]
