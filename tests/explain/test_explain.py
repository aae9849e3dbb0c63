"""Explanations: gradients agree with differences, removing the top path lowers the score, pictures are sound XML."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from gamma_kg import DataError, Gamma, KnowledgeGraph
from gamma_kg.demo import demo_graph, demo_split
from gamma_kg.explain import Explanation
from gamma_kg.explain.asked import Asked, Neighbourhood, Standing
from gamma_kg.explain.beam import best_walks
from gamma_kg.explain.deciding import Decision, deciding_facts
from gamma_kg.explain.gradients import edge_gradients
from gamma_kg.explain.neighbourhood_picture import FactGroup, draw_narrow_neighbourhood, draw_neighbourhood
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.encoder import relation_of_queries
from gamma_kg.nn.local_answers import Background


def asked_on(
    gamma: Gamma,
    kg: KnowledgeGraph,
    fact: tuple[int, int, int],
    near: Neighbourhood | None = None,
    gone: Iterable[tuple[int, int, int]] = (),
) -> Asked:
    with torch.no_grad():
        relation_graph = kg.relation_graph_as(gamma.config.relation_graph)
        relations = gamma.model.relation_states(relation_graph, kg.edges.inverse, torch.tensor([fact[1]]))
    return Asked(gamma.model, kg, fact, relations, gone, near)


def weighted_score(gamma: Gamma, kg: KnowledgeGraph, asked: Asked, weight_TE: torch.Tensor) -> torch.Tensor:
    """The score with a weight on every message of every layer, written down as docs/model.md §3 has it."""
    model, edges = gamma.model, asked.grounds[0].edges
    source, relation, answer = asked.fact
    query_BQ = asked.relations.state_URQ[asked.relations.which_B, torch.tensor([relation])]
    node, type_, neighbour = edges.slice(0, edges.num_edges)
    z_K = []
    for k, branch in enumerate(model.branches):
        own = slice(0, 8) if query_BQ.shape[1] == 8 else slice(8 * k, 8 * k + 8)
        x_ND = Starts.single(torch.tensor([source])).spread(edges.num_nodes, query_BQ[:, own])[0]
        boundary_ND = x_ND
        for weight_E, layer in zip(weight_TE, branch.layers, strict=True):
            r_RW = relation_of_queries(layer, asked.relations.state_URQ[..., own], asked.relations.which_B)[0]
            message = ALGEBRAS[layer.algebra].message(x_ND[neighbour], r_RW[type_]) * weight_E[:, None]
            agg_ND = boundary_ND.index_add(0, node, message)
            x_ND = x_ND + torch.relu(layer.norm(layer.linear(torch.cat([x_ND, agg_ND], -1))))
        z_K.append(x_ND[None, answer : answer + 1])
    return model.fuse(z_K, query_BQ).score_BC[0, 0]


@pytest.mark.parametrize("encoders", ["shared", "own"])
@pytest.mark.parametrize("branches", [("complex", "split-complex"), ("real",), ("dual", "translation")])
def test_edge_gradients_are_those_of_weights_on_messages(
    family: KnowledgeGraph, branches: tuple[str, ...], encoders: str
) -> None:
    config = GammaConfig(dim=8, num_layers=3, attention_dim=6, branches=branches)
    gamma = Gamma.from_config(config.with_options(relation_encoders=encoders), seed=1)
    gamma.model.double()
    fact = family.entity_id("Ann"), family.relation_id("mother of"), family.entity_id("Finn")
    asked = asked_on(gamma, family, fact)
    found_TE = edge_gradients(gamma.model, asked.grounds[0].edges, asked.relations, *fact)
    weight_TE = torch.ones(3, asked.grounds[0].edges.num_edges, dtype=torch.float64, requires_grad=True)
    score = weighted_score(gamma, family, asked, weight_TE)
    assert float(score.detach()) == pytest.approx(asked.standing.score, abs=1e-9)
    (expected_TE,) = torch.autograd.grad(score, weight_TE)
    torch.testing.assert_close(found_TE, expected_TE, atol=1e-9, rtol=1e-7)


def test_no_weight_of_the_model_gets_a_gradient(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    small_gamma.explain(family, head="Ann", relation="mother of", tail="Finn")
    assert all(parameter.grad is None for parameter in small_gamma.model.parameters())


def test_the_beam_finds_the_heaviest_walks_and_lets_them_rest() -> None:
    # 0 → 1 → 3 weighs (5+1)/2, 0 → 2 → 3 weighs (2+2)/2, 0 → 3 weighs 1; edge 5 leads back and must not be used.
    receiver, sender = np.array([1, 3, 2, 3, 3, 0]), np.array([0, 1, 0, 2, 0, 1])
    gradient_TE = np.zeros((3, 6))
    gradient_TE[0, [0, 2, 5]] = 5, 2, 9
    gradient_TE[1, [5]] = 9
    gradient_TE[2, [1, 3, 4]] = 1, 2, 1
    walks = best_walks(receiver, sender, gradient_TE, 0, 3, beam=4, count=10)
    assert [(walk.edges, walk.weight) for walk in walks] == [((0, 1), 3.0), ((2, 3), 2.0), ((4,), 1.0)]


def test_a_beam_agrees_with_trying_every_walk() -> None:
    rng = np.random.default_rng(5)
    receiver, sender = rng.integers(0, 7, size=(2, 30))
    gradient_TE = rng.random((3, 30))
    best: dict[tuple[int, ...], float] = {}

    def walk(layer: int, node: int, edges: tuple[int, ...], seen: tuple[int, ...], total: float) -> None:
        if layer == 3:
            if node == 6 and edges:
                best[edges] = max(best.get(edges, 0.0), total / len(edges))
            return
        walk(layer + 1, node, edges, seen, total)
        for e in np.flatnonzero(sender == node):
            if receiver[e] not in seen:
                walk(layer + 1, receiver[e], (*edges, int(e)), (*seen, receiver[e]), total + gradient_TE[layer, e])

    walk(0, 0, (), (0,), 0.0)
    found = best_walks(receiver, sender, gradient_TE, 0, 6, beam=1000, count=1000)
    assert {w.edges: w.weight for w in found} == pytest.approx(best)


@pytest.fixture(scope="module")
def demo() -> tuple[Gamma, KnowledgeGraph]:
    return Gamma.from_pretrained(), demo_graph()


def believed(gamma: Gamma, kg: KnowledgeGraph, count: int) -> list[tuple[str, str, str]]:
    """Held-out facts of different relations that the model ranks first."""
    split = demo_split()
    facts: dict[str, tuple[str, str, str]] = {}
    for h, r, t in split.queries.tolist():
        head, relation, tail = split.entities[h], split.relations[r], split.entities[t]
        if relation not in facts and gamma.predict(kg, head=head, relation=relation, top_k=1)[0].name == tail:
            facts[relation] = (head, relation, tail)
        if len(facts) == count:
            break
    return list(facts.values())


def test_removing_the_top_path_lowers_the_score(demo: tuple[Gamma, KnowledgeGraph]) -> None:
    gamma, kg = demo
    names = [(kg.entities[h], kg.relations[r], kg.entities[t]) for h, r, t in kg.triples.tolist()]
    facts = believed(gamma, kg, 5)
    assert len(facts) == 5
    for head, relation, tail in facts:
        found = gamma.explain(kg, head=head, relation=relation, tail=tail, num_facts=0)
        assert found.rank == 1 and found.paths and found.paths[0].drop > 0
        # Measured again from the outside: a graph without these facts, the relation graph being what it was.
        gone = {(step.head, step.relation, step.tail) for step in found.paths[0].steps}
        kept = torch.tensor([name not in gone for name in names])
        less = KnowledgeGraph(kg.triples[kept], kg.entities, kg.relations)
        less.__dict__["relation_graph"] = kg.relation_graph
        score = gamma.scores(less, [kg.entity_id(head)], [kg.relation_id(relation)])[0, kg.entity_id(tail)]
        assert found.score - float(score) == pytest.approx(found.paths[0].drop, abs=1e-3)


def test_paths_lead_from_head_to_tail_through_facts_of_the_graph(demo: tuple[Gamma, KnowledgeGraph]) -> None:
    gamma, kg = demo
    found = gamma.explain(kg, head="Kenya", relation="member of", tail="African Union", num_paths=3, num_facts=2)
    assert len(found.paths) == 3 and len(found.facts) == 2
    known = {(kg.entities[h], kg.relations[r], kg.entities[t]) for h, r, t in kg.triples.tolist()}
    for path in found.paths:
        ends = [(s.head, s.tail) if s.forward else (s.tail, s.head) for s in path.steps]
        assert ends[0][0] == "Kenya" and ends[-1][1] == "African Union"
        assert all(left[1] == right[0] for left, right in pairwise(ends))
        assert all((s.head, s.relation, s.tail) in known for s in path.steps)
        # The fact in question is in the graph, and must not explain itself.
        assert ("Kenya", "member of", "African Union") not in {(s.head, s.relation, s.tail) for s in path.steps}
    assert found.known and found.rank >= 1 and 0 < found.probability < 1
    assert sum(found.branch_weights.values()) == pytest.approx(1, abs=1e-4)
    drops = [path.drop for path in found.paths]
    assert drops == sorted(drops, reverse=True)


def test_every_form_of_an_explanation_is_sound(demo: tuple[Gamma, KnowledgeGraph]) -> None:
    gamma, kg = demo
    found = gamma.explain(kg, head="Norway", relation="borders", tail="Sweden", num_paths=2, num_facts=2)
    text = found.text()
    assert "Norway ← borders ← Sweden" in text and "Branches: complex" in text
    assert json.loads(found.json())["paths"][0]["steps"][0]["relation"] == "borders"
    svg = ElementTree.fromstring(found.svg())
    words = " ".join(svg.itertext())
    assert svg.tag.endswith("svg") and "Norway" in words and "borders" in words
    assert found.html().startswith("<!DOCTYPE html>") and "<svg" in found.html()


def test_names_with_markup_do_not_break_the_picture(small_gamma: Gamma) -> None:
    kg = KnowledgeGraph.from_triples([("<a> & 'b'", 'r"<script>', "c" * 90), ("c" * 90, "日本語の関係", "d")])
    found = small_gamma.explain(kg, head="<a> & 'b'", relation="日本語の関係", tail="d")
    ElementTree.fromstring(found.svg())
    assert "<script>" not in found.html()


def test_a_long_question_is_written_whole_and_with_the_probability_that_predict_gives() -> None:
    names = [" ".join(f"{kind}{n}" for n in range(40)) for kind in ("head", "relation", "tail")]
    found = Explanation(
        *names, score=1.0, probability=0.125, share=0.75, rank=1, known=False, branch_weights={}, paths=(), facts=(),
        pairs=(), cause="none", num_tested=0, local=None, is_outside=False, is_calibrated=True,
    )  # fmt: skip
    words = " ".join(ElementTree.fromstring(found.svg()).itertext())
    assert "tail39?" in words, "no line of the question is cut off"
    assert "probability 12.5%" in words and "probability 12.5%" in found.text()


def test_a_tail_out_of_reach_has_no_path(small_gamma: Gamma, family: KnowledgeGraph) -> None:
    found = small_gamma.explain(family, head="Ann", relation="mother of", tail="Nairobi")
    assert found.paths == ()
    assert "none within reach" in found.text()
    ElementTree.fromstring(found.svg())


def test_bad_requests_are_refused(small_gamma: Gamma, family: KnowledgeGraph) -> None:
    with pytest.raises(DataError, match="did you mean 'Ann'"):
        small_gamma.explain(family, head="Anne", relation="mother of", tail="Bob")
    with pytest.raises(DataError, match="at least one path"):
        small_gamma.explain(family, head="Ann", relation="mother of", tail="Bob", num_paths=0)


class OnFacts:
    """Stands in for a query whose score is a formula over the facts that are left."""

    fact = (0, 0, 9)

    def __init__(self, facts: list[tuple[int, int, int]], score: Callable[[set[tuple[int, int, int]]], float]) -> None:
        self._facts, self._score = facts, score
        self.standing = self.without([])

    def without_each(self, removals: Iterable[Iterable[tuple[int, int, int]]]) -> list[Standing]:
        return [self.without(triples) for triples in removals]

    def without(self, triples: Iterable[tuple[int, int, int]]) -> Standing:
        score = self._score(set(self._facts) - set(triples))
        share = 1 / (1 + np.exp(-score))
        return Standing(score, share, 1 if share >= 0.5 else 2)

    def facts(self) -> np.ndarray:
        return np.array(self._facts)


FACTS = [(0, 1, n) for n in range(1, 6)] + [(n, 2, 9) for n in range(1, 6)] + [(20, 3, 21)]


def decided(
    score: Callable[[set[tuple[int, int, int]]], float], facts: list[tuple[int, int, int]] | None = None
) -> Decision:
    asked = OnFacts(facts or FACTS, score)
    # All gradients are alike, as where a score is flat: removal has to find out.
    return deciding_facts(asked, [], np.zeros((2, len(facts or FACTS))))  # type: ignore[arg-type]


def test_the_fact_that_everything_hangs_on_comes_first_though_no_gradient_points_to_it() -> None:
    found = decided(lambda left: 3.0 if (0, 1, 4) in left else -3.0)
    assert found.cause == "one" and found.single[0].facts == ((0, 1, 4),)


def test_two_facts_that_stand_in_for_each_other_are_found_as_a_pair() -> None:
    found = decided(lambda left: 3.0 if {(0, 1, 2), (3, 2, 9)} & left else -3.0)
    assert found.cause == "two" and set(found.pairs[0].facts) == {(0, 1, 2), (3, 2, 9)}


def test_all_else_that_is_known_of_the_head_is_named_before_what_matters_a_little() -> None:
    one_left = [(0, 1, 1), *[fact for fact in FACTS if fact[0] != 0]]
    found = decided(lambda left: 2.0 + 0.1 * len(left - {(0, 1, 1)}), one_left)
    assert found.cause == "many" and found.single[0].facts == ((0, 1, 1),)
    # What decides still comes first, and a head with several facts has no such one.
    found = decided(lambda left: 3.0 if (4, 2, 9) in left else -3.0, one_left)
    assert [tested.facts for tested in found.single[:2]] == [((4, 2, 9),), ((0, 1, 1),)]
    found = decided(lambda left: 2.0 + 0.1 * len(left - {(0, 1, 1)}))
    assert found.single[-1].facts == ((0, 1, 1),)


def test_a_cause_that_is_spread_is_said_to_be_so() -> None:
    assert decided(lambda left: 0.5 * len(left)).cause == "many"
    assert decided(lambda left: 1.0).cause == "none"


def test_the_only_fact_of_an_entity_is_named_as_what_decides(small_gamma: Gamma, family: KnowledgeGraph) -> None:
    found = small_gamma.explain(family, head="Finn", relation="lives in", tail="Bob", num_facts=20)
    asked = asked_on(
        small_gamma, family, (family.entity_id("Finn"), family.relation_id("lives in"), family.entity_id("Bob"))
    )
    triples = {
        (family.entities[h], family.relations[r], family.entities[t]): (h, r, t) for h, r, t in family.triples.tolist()
    }
    drops = {name: asked.standing.score - asked.without([triple]).score for name, triple in triples.items()}
    for fact in found.facts:
        assert fact.drop == pytest.approx(drops[fact.head, fact.relation, fact.tail], abs=1e-5)
    at_ends = {name for name in drops if {"Finn", "Bob"} & {name[0], name[2]}}
    assert at_ends <= {(fact.head, fact.relation, fact.tail) for fact in found.facts}


def test_with_all_facts_kept_nothing_changes_and_with_none_no_path_is_left(
    small_gamma: Gamma, family: KnowledgeGraph
) -> None:
    fact = family.entity_id("Ann"), family.relation_id("mother of"), family.entity_id("Finn")
    asked = asked_on(small_gamma, family, fact)
    everything = [tuple(triple) for triple in family.triples.tolist()]
    assert asked.with_only(everything).score == pytest.approx(asked.standing.score, abs=1e-6)
    assert asked.with_only([]).score == pytest.approx(asked.without(everything).score, abs=1e-6)


@pytest.mark.parametrize("near", [None, [9], [9, 6]])
def test_facts_taken_out_side_by_side_count_as_they_do_one_at_a_time(
    small_gamma: Gamma, family: KnowledgeGraph, near: list[int] | None
) -> None:
    fact = family.entity_id("Ann"), family.relation_id("mother of"), family.entity_id("Finn")
    score_N = torch.linspace(-3, 0, family.num_entities)
    hood = None if near is None else Neighbourhood(near, Background(family.num_entities, None, score_N, None))
    asked = asked_on(small_gamma, family, fact, hood)
    facts = [tuple(triple) for triple in family.triples.tolist()]
    removals = [[], *([one] for one in facts), facts, facts[:3]]
    together = asked.without_each(removals)
    assert together == [asked.without(gone) for gone in removals]
    assert together[0].score == pytest.approx(asked.standing.score, abs=1e-6)
    # The definition: the query on a graph that never had these facts.
    apart = [asked_on(small_gamma, family, fact, hood, gone).standing.score for gone in removals]
    assert [one.score for one in together] == pytest.approx(apart, abs=1e-5) and len(set(together)) > 3


def test_reasons_load_neither_the_compiler_nor_the_symbolic_shapes_of_torch() -> None:
    """They take two seconds, which whoever asks for reasons first would wait."""
    program = """
import sys
from gamma_kg import Gamma
from gamma_kg.demo import demo_graph
Gamma.from_pretrained().explain(demo_graph(), head="Kenya", relation="borders", tail="Tanzania")
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert not {"torch._dynamo", "sympy", "torch.fx.experimental.symbolic_shapes"} & set(done.stdout.split())


def test_without_a_fact_the_answer_is_explained_as_if_it_were_gone(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    asked = {"head": "Bob", "relation": "sibling of", "tail": "Cleo"}
    before = small_gamma.explain(family, **asked)
    fact = before.facts[0]
    gone = (fact.head, fact.relation, fact.tail)
    after = small_gamma.explain(family, **asked, without=[gone])
    assert gone not in {(step.head, step.relation, step.tail) for path in after.paths for step in path.steps}
    assert before.score - after.score == pytest.approx(fact.drop, abs=1e-5) and after.rank == fact.rank
    assert after.score != before.score


@pytest.mark.parametrize("draw", [draw_neighbourhood, draw_narrow_neighbourhood])
def test_a_neighbourhood_is_drawn_with_hostile_names_as_text(draw: Callable[..., str]) -> None:
    groups = [
        FactGroup("<script>", True, 3, ("a'b\"c", "x\x00\ud800y")),
        FactGroup("points at", False, 12, tuple("abc")),
    ]
    picture = draw("</svg><b>", groups, link=lambda name: f"?name={name}&x='")
    root = ElementTree.fromstring(picture)
    words = " ".join(root.itertext())
    assert "</svg><b>" in words and "<script>" in words and "and 9 more" in words
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_a_local_explanation_is_that_of_the_local_answer(demo: tuple[Gamma, KnowledgeGraph]) -> None:
    gamma, kg = demo
    for local in (300, 1000):
        question = {"head": "Kenya", "relation": "borders"}
        best = gamma.predict(kg, **question, top_k=1, local=local, rules=False)[0]
        found = gamma.explain(kg, **question, tail=best.name, local=local, num_paths=2, num_facts=2)
        assert found.local == local and not found.is_outside
        assert found.score == pytest.approx(best.score, abs=1e-4) and found.rank == 1
        assert found.paths and found.facts
    whole = gamma.explain(kg, **question, tail=best.name, local="off", num_paths=1, num_facts=1)
    assert whole.local is None and whole.score != pytest.approx(found.score, abs=1e-4)


def test_an_answer_outside_of_the_neighbourhood_is_said_to_be_so(demo: tuple[Gamma, KnowledgeGraph]) -> None:
    gamma, kg = demo
    found = gamma.explain(kg, head="Kenya", relation="borders", tail="Norway", local=20)
    assert found.is_outside and found.paths == () and found.facts == ()
    assert "not among the 20 facts around Kenya" in found.text()
    ElementTree.fromstring(found.svg())
