import math

import pytest
import torch

from gamma_kg import DataError, Gamma, KnowledgeGraph, UnknownNameError


def test_tails_are_ranked_by_score_and_known_facts_left_out(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = small_gamma.predict(family, head="Ann", relation="mother of", top_k=100)
    assert {p.name for p in found} == set(family.entities) - {"Bob", "Cleo"}
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    scores = small_gamma.scores(family, [0], [0])[0]
    assert all(math.isclose(p.score, scores[family.entity_id(p.name)], abs_tol=1e-6) for p in found)
    assert all((p.head, p.relation, p.tail, p.known) == ("Ann", "mother of", p.name, False) for p in found)


def test_known_facts_are_marked_when_asked_for(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = small_gamma.predict(family, head="Ann", relation="mother of", top_k=100, include_known=True)
    assert {p.name for p in found if p.known} == {"Bob", "Cleo"} and len(found) == 8


def test_a_fact_has_one_probability_beside_known_ones_and_alone(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    asked = {"head": "Ann", "relation": "mother of", "top_k": 100}
    alone = {p.name: p.probability for p in small_gamma.predict(family, **asked)}
    found = small_gamma.predict(family, **asked, include_known=True)
    assert {p.name: p.probability for p in found if not p.known} == alone
    assert math.isclose(sum(alone.values()), 1, rel_tol=1e-9)
    assert [p.probability for p in found] == sorted((p.probability for p in found), reverse=True)
    rivals = sum(math.exp(p.score) for p in found if not p.known)
    for p in found:
        if p.known:  # as if it alone were not
            assert math.isclose(p.probability, math.exp(p.score) / (math.exp(p.score) + rivals), rel_tol=1e-6)


def test_heads_are_the_answers_of_the_inverse_query(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = small_gamma.predict(family, tail="Bob", relation="mother of", top_k=3)
    scores = small_gamma.scores(family, [family.entity_id("Bob")], [family.num_relations])[0]
    scores[family.entity_id("Ann")] = -torch.inf
    assert [p.name for p in found] == [family.entities[i] for i in scores.topk(3).indices.tolist()]
    assert all((p.head, p.tail) == (p.name, "Bob") for p in found)


def test_relations_between_two_entities_are_ranked(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = small_gamma.predict(family, head="Ann", tail="Bob", include_known=True)
    assert {p.name for p in found} == set(family.relations)
    assert [p.name for p in found if p.known] == ["mother of"]
    assert "mother of" not in {p.name for p in small_gamma.predict(family, head="Ann", tail="Bob")}


def test_a_relation_is_asked_from_both_ends_as_evaluation_ranks_it(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = small_gamma.predict(family, head="Ann", tail="Bob", include_known=True, rules=False)
    head, tail, num = family.entity_id("Ann"), family.entity_id("Bob"), family.num_relations
    scores = small_gamma.scores(family, [head] * num + [tail] * num, range(2 * num))
    for p in found:
        r = family.relation_id(p.name)
        there, back = float(scores[r, tail]), float(scores[num + r, head])
        assert there != back, "else one way alone would pass"
        assert math.isclose(p.score, (there + back) / 2, abs_tol=1e-6)
    assert [p.name for p in found if not p.known] == [
        p.name for p in sorted(found, key=lambda p: -p.score) if not p.known
    ]


def test_branch_weights_carry_the_names_of_the_branches(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    (best,) = small_gamma.predict(family, head="Ann", relation="lives in", top_k=1)
    assert list(best.branch_weights) == ["complex", "split-complex"]
    assert math.isclose(sum(best.branch_weights.values()), 1, rel_tol=1e-6)
    ultra = Gamma.from_preset("ultra").predict(family, head="Ann", relation="lives in", top_k=1)
    assert ultra[0].branch_weights == {"real": 1.0}
    twins = Gamma.from_preset("ultra-att").predict(family, head="Ann", relation="lives in", top_k=1)
    assert list(twins[0].branch_weights) == ["real", "real 2"]


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"head": "Ann"}, "exactly two of head, relation and tail"),
        ({"head": "Ann", "relation": "lives in", "tail": "Bob"}, "exactly two"),
        ({"head": "Ann", "relation": "lives in", "top_k": 0}, "top_k must be at least 1, got 0"),
    ],
)
def test_bad_questions_are_refused(
    family: KnowledgeGraph, small_gamma: Gamma, asked: dict[str, object], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        small_gamma.predict(family, **asked)  # type: ignore[arg-type]


def test_unknown_names_are_refused_with_a_suggestion(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    with pytest.raises(UnknownNameError, match="'Ann'"):
        small_gamma.predict(family, head="Anne", relation="lives in")
