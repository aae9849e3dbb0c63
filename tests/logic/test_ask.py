"""Questions in names: answers, bindings, what follows and what is predicted."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest
from torch import Tensor
from typer.testing import CliRunner

from gamma_kg import ConfigError, DataError, Gamma, KnowledgeGraph, UnknownNameError, ask, entity
from gamma_kg.cli import app
from gamma_kg.cli.ask import print_answers
from gamma_kg.logic.ask import Answer, Step
from gamma_kg.logic.bindings import Binder
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import resolve
from gamma_kg.logic.predicted import StepOptions, steps_of
from gamma_kg.logic.project import Operand, Traversal, members
from gamma_kg.predicting.calibration import Calibration, MonotoneMap


def test_what_follows_comes_first_with_facts_as_steps(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    answers = ask(family, "SELECT ?x { <Ann> <married to> ?y . ?y <father of> ?x }", small_gamma, top_k=2)
    assert {answer.name for answer in answers} == {"Bob", "Cleo"}
    for answer in answers:
        assert answer.follows and answer.probability == 1
        assert answer.bindings == {"y": "Dan"}
        assert [(step.head, step.relation, step.tail, step.known) for step in answer.steps] == [
            ("Dan", "father of", answer.name, True),
            ("Ann", "married to", "Dan", True),
        ]


def test_only_new_leaves_out_what_follows_and_tells_predicted_links(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    question = entity("Ann").along("married to").called("y").along("father of")
    answers = ask(family, question, small_gamma, only_new=True, top_k=20)
    assert len(answers) == family.num_entities - 2
    for answer in answers:
        assert not answer.follows and set(answer.bindings) == {"y"}
        assert any(not step.known for step in answer.steps)
        assert all((step.probability == 1) == step.known for step in answer.steps)
    assert [a.probability for a in answers] == sorted((a.probability for a in answers), reverse=True)


def test_a_step_is_as_likely_as_explain_says_and_an_answer_as_all_its_steps_together(
    family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    gamma = Gamma(small_gamma.model)
    gamma.adopt_calibration(family, Calibration(MonotoneMap(np.array([-9.0, 9.0]), np.array([0.1, 0.7])), {}))
    question = entity("Ann").along("married to", "father of")
    for answer in ask(family, question, gamma, only_new=True, top_k=3):
        for step in answer.steps:
            told = gamma.explain(family, head=step.head, relation=step.relation, tail=step.tail)
            assert step.probability == (1 if step.known else pytest.approx(told.probability))
        assert answer.probability == pytest.approx(math.prod(step.probability for step in answer.steps))


def test_what_is_denied_takes_from_the_probability_what_speaks_for_it(
    family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    """Finn is Eve's child for sure, so he is an answer as far as nobody predicts that Ann is his mother."""
    denied = {a.name: a for a in ask(family, "SELECT ?x { <Ann> <mother of> ?x }", small_gamma, top_k=20)}
    question = "SELECT ?x { <Eve> <mother of> ?x MINUS { <Ann> <mother of> ?x } FILTER(?x != <Bob>) }"
    found = {a.name: a for a in ask(family, question, small_gamma, top_k=20)}
    assert found["Finn"].follows
    assert found["Finn"].probability == pytest.approx(1 - denied["Finn"].probability)
    assert found["Finn"].probability < 1
    (against,) = found["Finn"].denied
    assert (against.head, against.relation, against.tail, against.known) == ("Ann", "mother of", "Finn", False)
    assert found["Finn"].probability == pytest.approx(1 - against.probability)
    assert "Bob" not in found


class _OneLink(Traversal):
    """The facts, and one link that is predicted, read either way."""

    def __init__(self, kg: KnowledgeGraph, head: str, relation: str, tail: str) -> None:
        super().__init__(kg)
        ends, self._relation = (kg.entity_id(head), kg.entity_id(tail)), kg.relation_id(relation)
        self._of = {self._relation: ends, self._relation + kg.num_relations: ends[::-1]}

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        found_BN = super().project(operands, relations)
        for found_N, operand, relation in zip(found_BN, operands, relations, strict=True):
            start, end = self._of.get(relation, (-1, -1))
            if start >= 0 and start in members(operand):
                found_N[end] = 0.4
        return found_BN


@pytest.mark.parametrize("chosen", ["m3", "m29"])
def test_an_answer_is_bound_to_the_member_that_is_linked_with_it_however_many_there_are(chosen: str) -> None:
    facts = [("hub", "has", f"m{i}") for i in range(30)] + [("m0", "likes", "a"), ("b", "has", "c")]
    kg = KnowledgeGraph.from_triples(facts)
    projector = _OneLink(kg, chosen, "likes", "b")
    formula = resolve(entity("hub").along("has").called("y").along("likes"), kg)
    binder = Binder(formula, execute([formula], projector), projector)
    a, b, c = (kg.entity_id(name) for name in "abc")
    found = binder.bind([a, b, c])
    assert [kg.entities[found[i].entities["y"]] for i in (a, b)] == ["m0", chosen]
    assert [[link.known for link in found[i].links] for i in (a, b)] == [[True, True], [False, True]]
    assert not found[c].is_possible  # nothing leads there


def test_inverse_steps_are_told_as_the_facts_they_are(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    (answer,) = ask(family, "SELECT ?x { ?x <mother of> <Finn> } LIMIT 1", small_gamma)
    assert answer.name == "Eve"
    assert [(step.head, step.relation, step.tail) for step in answer.steps] == [("Eve", "mother of", "Finn")]


def test_a_union_is_bound_by_the_branch_that_holds(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    question = "SELECT ?x { { ?a <mother of> ?x . VALUES ?a { <Eve> } } UNION { <Gus> <father of> ?x } } LIMIT 1"
    (answer,) = ask(family, question, small_gamma)
    assert answer.name == "Finn" and answer.follows and len(answer.steps) == 1


def test_what_is_denied_is_no_answer_and_binds_nothing(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    question = "SELECT ?x { <Ann> <mother of> ?x FILTER NOT EXISTS { ?z <sibling of> ?x . <Bob> <sibling of> ?w } }"
    with pytest.raises(DataError, match="hang together"):
        ask(family, question, small_gamma)
    answers = ask(family, "SELECT ?x { <Ann> <mother of> ?x MINUS { <Bob> <sibling of> ?x } }", small_gamma, top_k=20)
    by_name = {answer.name: answer for answer in answers}
    assert by_name["Bob"].follows and not by_name.get("Cleo", by_name["Nairobi"]).follows
    assert [step.relation for step in by_name["Bob"].steps] == ["mother of"]


def test_lists_builder_and_sparql_ask_the_same(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    questions = (
        "SELECT ?x { <Ann> <mother of> ?x . <Bob> <sibling of> ?x }",
        entity("Ann").along("mother of") & entity("Bob").along("sibling of"),
        [["Ann", ["mother of"]], ["Bob", ["sibling of"]]],
    )
    first, *others = ([(a.name, a.probability) for a in ask(family, q, small_gamma)] for q in questions)
    assert all(other == first for other in others)


def test_limits_and_unknown_names(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    assert len(ask(family, "SELECT ?x { <Ann> <mother of> ?x } LIMIT 3", small_gamma)) == 3
    assert len(ask(family, "SELECT ?x { <Ann> <mother of> ?x } LIMIT 3", small_gamma, top_k=1)) == 1
    for none in (
        {"question": "SELECT ?x { <Ann> <mother of> ?x } LIMIT 0"},
        {"question": ["Ann", ["mother of"]], "top_k": 0},
    ):
        with pytest.raises(DataError, match="at least one answer"):
            ask(family, gamma=small_gamma, **none)
    with pytest.raises(UnknownNameError, match="did you mean 'Ann'"):
        ask(family, "SELECT ?x { <Anna> <mother of> ?x }", small_gamma)
    with pytest.raises(ConfigError, match="no logic is named"):
        ask(family, entity("Ann").along("mother of"), small_gamma, logic="fuzzy")
    with pytest.raises(DataError, match="nothing but a negation"):
        ask(family, ~entity("Ann").along("mother of"), small_gamma)


def test_why_explains_predicted_steps_and_only_those(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    question = entity("Ann").along("married to", "father of")
    (answer,) = ask(family, question, small_gamma, only_new=True, top_k=1, why=True)
    for step in answer.steps:
        assert (step.why is None) == step.known
        if step.why is not None:
            assert (step.why.head, step.why.relation, step.why.tail) == (step.head, step.relation, step.tail)
    assert all(step.why is None for step in ask(family, question, small_gamma, top_k=1, why=True)[0].steps)


def test_the_command_answers_in_a_table_and_in_json() -> None:
    question = "SELECT ?x { <Kenya> <borders> ?n . ?n <has capital> ?x } LIMIT 2"
    shown = CliRunner().invoke(app, ["ask", "demo", question])
    assert shown.exit_code == 0 and "follows from" in shown.output and "?n" in shown.output
    lines = CliRunner().invoke(app, ["ask", "demo", question, "--json"]).stdout.splitlines()
    first = json.loads(lines[0])
    assert len(lines) == 2 and first["follows"] and first["steps"][0]["relation"] == "has capital"
    bad = CliRunner().invoke(app, ["ask", "demo", '["Kenya", ["borders"'])
    assert isinstance(bad.exception, DataError) and "no JSON" in str(bad.exception)


def test_what_is_hardly_likely_is_left_out_and_counted_unless_asked_for() -> None:
    """Kenya is no member of the European Union: a table of countries at 0.1 % each would say more than is known."""
    words = ["ask", "demo", "SELECT ?x { ?x <member of> <European Union> . ?x <borders> <Kenya> } LIMIT 3"]
    few, all_ = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--least", "0", "--json"]))
    assert "3 answers less likely than 0.5% left out" in few.stderr and not few.stdout
    assert all(json.loads(line)["probability"] < 0.005 for line in all_.stdout.splitlines())
    assert len(all_.stdout.splitlines()) == 3 and "left out" not in all_.stderr
    wrong = CliRunner().invoke(app, [*words, "--least", "5"])
    assert isinstance(wrong.exception, ConfigError) and "0..1" in str(wrong.exception)


def test_the_table_tells_what_speaks_against_an_answer_and_what_is_hardly_likely(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    link = Step("A", "member of", "Union", known=False, probability=0.05)
    rest = {"degree": 1.0, "bindings": {}, "steps": (replace(link, relation="near", probability=0.0002),)}
    print_answers([Answer("A", 0.95, follows=True, denied=(link,), **rest)])
    assert "yes, unless A «member of» Union (5.0%)" in capsys.readouterr().out
    slight = replace(link, probability=0.001)
    print_answers([Answer("B", 0.0002, follows=False, denied=(slight, replace(link, known=True)), **rest)])
    shown = capsys.readouterr().out
    assert "if A «near» Union (<0.1%)" in shown and "unless" not in shown


def test_weights_say_how_they_take_a_step(small_gamma: Gamma) -> None:
    saved = StepOptions(threshold=0.2, share=None)
    assert steps_of(Gamma(small_gamma.model, {"steps": asdict(saved)})) == saved
    assert steps_of(small_gamma) == StepOptions()


def test_no_step_goes_against_a_hierarchy_unless_told_so(small_gamma: Gamma) -> None:
    """A tree of two children each, 510 facts: nothing is above its own parent, by one step or by two."""
    kg = KnowledgeGraph.from_triples([(f"n{i}", "kind of", f"n{(i - 1) // 2}") for i in range(1, 511)])
    below = {f"n{i}" for i in (3, 4, 7, 8, 9, 10)}

    def found(question: str, **options: bool) -> set[str]:
        return {a.name for a in ask(kg, question, small_gamma, top_k=511, only_new=True, **options)}

    one_step, two_steps = "SELECT ?x { <n1> <kind of> ?x }", "SELECT ?x { <n3> <kind of>/<kind of> ?x }"
    assert below <= found(one_step, rules=False)
    assert not below & found(one_step)
    assert not below & found(two_steps)
    assert "n2" in found(one_step)  # rules leave others in
