"""Following facts agrees with the slow executor, and the sampler's answers with both."""

import numpy as np
import pytest
from slow_executor import Slow, random_triples

from gamma_kg import ConfigError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.logic import traverse as traversing
from gamma_kg.logic.formula import And, Entity, Everything, Formula, Not, walk
from gamma_kg.logic.lists import SHAPES, shape_of
from gamma_kg.logic.sample import BALANCES, Facts, sample_queries
from gamma_kg.logic.traverse import follow_edges, follow_known, partly_seen, traverse

ENTITIES, RELATIONS = 12, 3
FORMULAS: tuple[Formula, ...] = (
    Entity(3),
    Entity(3).along(0, 4),
    Entity(3).along(1) & Entity(5).along(2),
    Entity(3).along(1) | Entity(5).along(5),
    (Entity(2).along(0) | Entity(1).along(3)).along(1, 2),
    Entity(3).along(0, 1) & ~Entity(4).along(2),
    ~Entity(3).along(0),
    (Entity(1).along(0) & ~Entity(2).along(1)).along(4) & ~(Entity(7).along(2) | Entity(8)),
    Entity(1).along(0) & Everything().along(5),
    ~~Entity(1).along(0),
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("formula", FORMULAS, ids=str)
def test_traversal_agrees_with_the_slow_executor(formula: Formula, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    triples = random_triples(seed, ENTITIES, RELATIONS, 40)
    expected = Slow(triples, ENTITIES, RELATIONS).answers(formula)
    known = follow_known(KnownAnswers.build(triples, ENTITIES, RELATIONS))
    edges = follow_edges(Edges.of_triples(triples, ENTITIES, RELATIONS))
    for follow in (known, edges):
        found = traverse(formula, follow, ENTITIES)
        assert set(found.tolist()) == expected
        assert (np.diff(found) > 0).all()
    monkeypatch.setattr(traversing, "FEW", 0)
    assert set(traverse(formula, edges, ENTITIES).tolist()) == expected


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("formula", FORMULAS, ids=str)
def test_an_answer_is_helped_when_some_derivation_uses_a_seen_fact(formula: Formula, seed: int) -> None:
    triples = random_triples(seed, ENTITIES, RELATIONS, 40)
    seen = triples[::3]
    facts = Facts(seen, triples, ENTITIES, RELATIONS)
    answers, helped = partly_seen(formula, facts.seen, facts.true, ENTITIES)
    slow, seen_facts = Slow(triples, ENTITIES, RELATIONS), Slow(seen, ENTITIES, RELATIONS).facts
    assert set(answers.tolist()) == slow.answers(formula)
    expected = {x for x in answers.tolist() if any(used & seen_facts for used in slow.derivations(formula, x))}
    assert set(helped.tolist()) == expected


@pytest.mark.parametrize("balance", BALANCES)
def test_sampled_queries_have_the_answers_that_the_slow_executor_finds(balance: str) -> None:
    triples = random_triples(5, 25, 4, 160)
    seen = triples[np.random.default_rng(1).random(len(triples)) < 0.6]
    queries = sample_queries(Facts(seen, triples, 25, 4), 4, balance=balance, seed=2)
    slow_true, slow_seen = Slow(triples, 25, 4), Slow(seen, 25, 4)
    assert {query.shape for query in queries} == set(SHAPES)
    assert len({query.formula for query in queries}) == len(queries)
    for query in queries:
        assert shape_of(query.formula) == query.shape
        true, by_seen = slow_true.answers(query.formula), slow_seen.answers(query.formula)
        assert set(query.easy.tolist()) == true & by_seen
        assert set(query.hard.tolist()) == true - by_seen
        assert len(query.ranked) and len(true) <= 100
        unseen = {
            x
            for x in query.hard.tolist()
            if not any(used & slow_seen.facts for used in slow_true.derivations(query.formula, x))
        }
        assert set(query.unseen.tolist()) == unseen


def test_the_same_seed_gives_the_same_queries_whichever_shapes_are_asked() -> None:
    triples = random_triples(5, 25, 4, 160)
    facts = Facts(triples[::2], triples, 25, 4)
    whole = sample_queries(facts, 3, seed=7)
    assert [q.formula for q in whole] == [q.formula for q in sample_queries(facts, 3, seed=7)]
    part = sample_queries(facts, 3, shapes=["2i", "pin"], seed=7)
    assert [q.formula for q in part] == [q.formula for q in whole if q.shape in ("2i", "pin")]
    assert [q.formula for q in whole] != [q.formula for q in sample_queries(facts, 3, seed=8)]


def test_a_denial_takes_something_away_and_no_branch_comes_twice() -> None:
    triples = random_triples(5, 25, 4, 160)
    facts = Facts(triples[::2], triples, 25, 4)
    for query in sample_queries(facts, 5, seed=3):
        for part in walk(query.formula):
            assert len(set(part.parts)) == len(part.parts)
            if isinstance(part, And) and any(isinstance(member, Not) for member in part.members):
                asserted = And(tuple(member for member in part.members if not isinstance(member, Not)))
                assert len(traverse(asserted, facts.true, 25)) > len(traverse(part, facts.true, 25))


def test_a_graph_with_nothing_held_out_has_no_queries() -> None:
    triples = random_triples(5, 25, 4, 60)
    facts = Facts(triples, triples, 25, 4)
    assert sample_queries(facts, 2, shapes=["1p", "2p"]) == []
    assert sample_queries(facts, 2, shapes=["1p", "2p"], balance="unseen") == []


def test_an_unknown_shape_names_the_nearest() -> None:
    triples = random_triples(5, 25, 4, 60)
    with pytest.raises(ConfigError, match="did you mean"):
        sample_queries(Facts(triples, triples, 25, 4), 2, shapes=["2pi"])
