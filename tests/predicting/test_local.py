from pathlib import Path

import numpy as np
import pytest
import torch

from gamma_kg import ConfigError, DataError, Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.errors import NonFiniteScoreError
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.growth import grow
from gamma_kg.nn.local_answers import Background, LocalAnswers, Seen
from gamma_kg.predicting import background as background_file
from gamma_kg.predicting import switch
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.background import FAR, BackgroundCache, frequent_answers, make_background, sampled_background
from gamma_kg.predicting.baselines import frequency_baseline
from gamma_kg.predicting.fingerprint import run_fingerprint
from gamma_kg.predicting.prediction import Query
from gamma_kg.predicting.query_files import answer_queries
from gamma_kg.predicting.relation_cache import RelationCache, relation_states
from gamma_kg.predicting.switch import DENSE, ROOM, basis, basis_of_many, local_triples, near_triples, triples_for


def test_a_neighbourhood_that_holds_all_facts_gives_the_scores_of_the_whole_graph(
    family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    source, relation = torch.arange(4), torch.tensor([0, 4, 2, 9])
    whole = small_gamma.scores(family, source, relation, local="off")
    near = small_gamma.scores(family, source, relation, local=1000)
    for q in range(4):
        hood = grow(family.edges, source[q : q + 1], 1000).entity_N
        torch.testing.assert_close(near[q, hood], whole[q, hood], rtol=0, atol=1e-5)


def test_entities_outside_are_scored_by_the_relation_without_a_source(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    cache = RelationCache()
    nobody = Starts(torch.empty(0, dtype=torch.long), None, torch.tensor([0, 0]))
    relation = torch.tensor([4])
    relations = relation_states(small_gamma.model, town, relation, cache, 1 << 30)
    with torch.no_grad():
        expected = small_gamma.model.score_entities(town.edges, relations, nobody, relation).score_BC[0] - FAR
    near = small_gamma.scores(town, [7], [4], local=20)[0]
    outside = torch.ones(70, dtype=torch.bool)
    outside[grow(town.edges, torch.tensor([7]), 20).entity_N] = False
    assert 40 < int(outside.sum()) < 70
    torch.testing.assert_close(near[outside], expected[outside], rtol=0, atol=1e-5)


def test_a_score_is_the_mean_of_a_wide_neighbourhood_which_counts_twice_and_a_near_one(
    town: KnowledgeGraph, small_gamma: Gamma
) -> None:
    source, relation = torch.tensor([7]), torch.tensor([4])
    model, cache = small_gamma.model, RelationCache()
    relations = relation_states(model, town, relation, cache, 1 << 30)
    background = make_background(model, town, 4, cache, 1 << 30).score_M
    rows = []
    for triples in (60, 15):
        hood = grow(town.edges, source, triples)
        with torch.no_grad():
            own = model.score_entities(hood.edges, relations, Starts.single(torch.tensor([0])), relation).score_BC[0]
        rows.append(background.index_copy(0, hood.entity_N, own))
    wide, near = rows
    found = small_gamma.scores(town, source, relation, local=60)[0]
    torch.testing.assert_close(found, (2 * wide + near) / 3, rtol=0, atol=1e-5)
    assert float((found - wide).abs().max()) > 0.01


def test_an_entity_that_only_the_near_neighbourhood_has_is_still_found() -> None:
    background = Background(6, None, torch.arange(6.0), None)
    wide = Seen(torch.tensor([4, 1]), torch.tensor([10.0, 20.0]), torch.tensor([[0.9, 0.1], [0.8, 0.2]]))
    near = Seen(torch.tensor([1, 5]), torch.tensor([50.0, 8.0]), torch.tensor([[0.7, 0.3], [0.6, 0.4]]))
    assert torch.equal(LocalAnswers.of(8, wide, None, background).dense(), torch.tensor([0, 20.0, 2, 3, 10, 5]))
    answers = LocalAnswers.of(8, wide, near, background)
    expected = torch.tensor([0, (2 * 20 + 50) / 3, 2, 3, (2 * 10 + 4) / 3, (2 * 5 + 8) / 3])
    torch.testing.assert_close(answers.dense(), expected)
    weights = answers.weights(torch.tensor([1, 5]))
    assert weights is None  # the background has none here
    assert answers.rank(5, torch.tensor([4])) == 2


def test_a_local_answer_knows_nothing_of_facts_far_away(small_gamma: Gamma) -> None:
    """Inside of a neighbourhood only its own facts count, but for the states of relations."""
    path = [(f"e{i}", "next", f"e{i + 1}") for i in range(40)]
    short, long = KnowledgeGraph.from_triples(path[:30]), KnowledgeGraph.from_triples(path)
    near = [small_gamma.scores(kg, [3], [0], local=6)[0] for kg in (short, long)]
    hood = grow(long.edges, torch.tensor([3]), 6).entity_N
    assert torch.equal(near[0][hood], near[1][hood])


def test_many_queries_at_once_get_the_answers_that_each_gets_alone(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    source, relation = torch.tensor([5, 1, 5, 30, 65, 5]), torch.tensor([0, 3, 0, 5, 1, 4])
    together = small_gamma.scores(town, source, relation, local=30)
    for memory in ("1", "10MB"):
        again = small_gamma.scores(town, source, relation, memory, local=30)
        torch.testing.assert_close(again, together, rtol=0, atol=1e-6)
    for q in range(6):
        alone = small_gamma.scores(town, source[q : q + 1], relation[q : q + 1], local=30)[0]
        torch.testing.assert_close(together[q], alone, rtol=0, atol=1e-6)


def test_a_weighted_set_of_starts_has_one_neighbourhood(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    starts = Starts(torch.tensor([2, 40]), torch.tensor([0.25, 1.0]), torch.tensor([0, 2]))
    (batch,) = small_gamma.score_batches(town, starts, torch.tensor([1]), local=10_000)
    (whole,) = small_gamma.score_batches(town, starts, torch.tensor([1]), local="off")
    hood = grow(town.edges, starts, 10_000).entity_N
    torch.testing.assert_close(batch.answers(0).at(hood), whole.answers(0).at(hood), rtol=0, atol=1e-5)


def test_predictions_are_the_best_of_the_scores(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    score_N = small_gamma.scores(town, [7], [1], local=20)[0]
    score_N[town.answers(7, 1)] = -torch.inf
    found = small_gamma.predict(town, head="e7", relation="r1", local=20, top_k=8)
    assert [p.score for p in found] == pytest.approx(score_N.topk(8).values.tolist())
    assert [p.probability for p in found] == pytest.approx(score_N.double().softmax(0).topk(8).values.tolist())
    assert [score_N[town.entity_id(p.name)].item() for p in found] == [p.score for p in found]


def test_predictions_say_what_they_were_computed_on(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    for local, expected in (("off", None), ("auto", None), (25, 25), ("25", 25)):
        found = small_gamma.predict(town, head="e7", relation="r1", local=local)
        assert {(p.local, p.is_sampled) for p in found} == {(expected, False)}
        between = small_gamma.predict(town, head="e7", tail="e3", local=local)
        assert {p.local for p in between} == {expected}


def test_auto_goes_by_the_counts_of_the_graph() -> None:
    assert triples_for(14_541, 272_115, "auto") is not None
    # A small graph is taken whole: where a near neighbourhood has half of it.
    assert triples_for(4000, 4000, "auto") is None and triples_for(4000, 4001, "auto") == 8000
    # A dense one where its layers are cheap, and any whose layers cost no more than what is said to be cheap.
    assert triples_for(10, 100_000, "auto") is None and triples_for(1000, 10**6, "auto") == 22_000
    assert triples_for(4000, 4001, "auto", 368_002) is None and triples_for(4000, 4001, "auto", 368_001) == 8000
    # Beside a neighbourhood of a sparse graph stands a near one.
    assert near_triples(1000, 7_499, 8000) == 2000 and near_triples(1000, 7_500, 8000) is None
    assert triples_for(10**7, 10**8, "off") is None
    sparse, dense = triples_for(10**6, 10**6, "auto"), triples_for(10**5, 2 * 10**6, "auto")
    assert sparse is not None and dense is not None and sparse < dense
    assert basis(None) == "the whole graph" and "8,000" in basis(8000) and "sample" in basis(8000, True)
    many = KnowledgeGraph.from_triples([(f"e{i}", "r", f"e{j}") for i in range(20) for j in range(20)])
    assert basis_of_many(many, None) == "the whole graph"
    assert basis_of_many(many, 100) == "neighbourhoods of up to 100 facts (400 around hubs)"


def test_baselines_know_whole_graphs_only(town: KnowledgeGraph) -> None:
    frequency = frequency_baseline()
    assert {p.local for p in frequency.predict(town, head="e7", relation="r1", local=20)} == {None}
    frequency.calibrate(town, max_hidden=20, local=20)
    assert frequency.calibration(town, "off") is not None
    local, whole = AnswerOptions(local=20), AnswerOptions(local="off")
    assert run_fingerprint(frequency, town, local) == run_fingerprint(frequency, town, whole)


@pytest.mark.parametrize("wrong", ["yes", "0", -5, "1.5"])
def test_a_switch_that_means_nothing_is_refused(town: KnowledgeGraph, wrong: str | int) -> None:
    with pytest.raises(ConfigError, match="auto, off or a number of triples"):
        local_triples(town, wrong)


def test_a_background_is_made_once_per_relation_and_again_for_other_weights(
    town: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(model: object, kg: object, relation: int, *rest: object, **more: object) -> object:
        made.append(relation)
        return make_background(model, kg, relation, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(background_file, "make_background", counted)
    gamma = Gamma.from_config(small_gamma.config, seed=5)
    gamma.scores(town, [1, 2, 3], [0, 0, 4], local=20)
    gamma.scores(town, [4], [0], local=30)
    assert made == [0, 4]
    with torch.no_grad():
        gamma.model.score.out.weight.add_(1)
    gamma.scores(town, [1], [0], local=20)
    assert made == [0, 4, 0]


def test_backgrounds_are_bounded_in_bytes(
    town: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_file, "CACHED_BYTES", 2 * 70 * 4 * 3)
    cache, relations = BackgroundCache(), RelationCache()
    for relation in range(6):
        cache.of(small_gamma.model, town, relation, relations, 1 << 30)
    with cache._graphs.of(small_gamma.model, town) as kept:
        assert [relation for relation, _ in kept] == [4, 5]


def test_a_large_graph_gets_its_background_from_a_sample_and_says_so(
    town: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WHOLE_TRIPLES", 100), ("SAMPLE_TRIPLES", 60), ("EVEN", 5), ("FREQUENT", 5)):
        monkeypatch.setattr(background_file, name, value)
    gamma = Gamma.from_config(small_gamma.config, seed=5)
    found = gamma.predict(town, head="e7", relation="r1", local=20, top_k=60)
    assert {p.is_sampled for p in found} == {True}
    with gamma._backgrounds._graphs.of(gamma.model, town) as kept:
        background = kept[1, False]
    assert background.entity_M is not None and 5 < len(background.entity_M) < 60
    unmet = torch.tensor(sorted(set(range(70)) - set(background.entity_M.tolist())))
    assert set(background.at(unmet).tolist()) == {background.rest}
    # The most frequent answers are in the sample.
    counts = torch.bincount(town.triples[town.triples[:, 1] == 1, 2], minlength=70)
    assert torch.isin(counts.topk(3).indices, background.entity_M).all()


def test_frequent_answers_are_found_by_their_inverse_edges(town: KnowledgeGraph) -> None:
    counts = torch.bincount(town.triples[town.triples[:, 1] == 2, 2], minlength=70)
    found, times = frequent_answers(town.edges, 5)
    assert counts[found].tolist() == sorted(counts[counts > 0].tolist(), reverse=True)
    assert times.tolist() == counts[found].tolist()


def test_more_of_a_sample_lies_around_the_more_frequent_answers(
    small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two answers with as many facts of their own, one of them ten times as often the answer."""
    facts = [(f"p{i}", "likes", "often") for i in range(30)] + [(f"p{i}", "likes", "seldom") for i in range(30, 33)]
    facts += [(end, "has", f"{end} {i}") for end in ("often", "seldom") for i in range(40)]
    facts += [(f"{end} {i}", "near", f"{end} far {i}") for end in ("often", "seldom") for i in range(40)]
    kg = KnowledgeGraph.from_triples(facts)
    background = sampled_background(small_gamma.model, kg, 0, RelationCache(), 1 << 30, 60)
    assert background.entity_M is not None
    inside = [kg.entities[e] for e in background.entity_M.tolist()]
    often, seldom = (sum(name.startswith(end) for name in inside) for end in ("often", "seldom"))
    assert {"often", "seldom"} <= set(inside)
    assert often > 2 * seldom


def test_a_relation_that_no_block_shows_has_a_background_too(small_gamma: Gamma) -> None:
    kg = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")], relations=["r", "unused"])
    background = sampled_background(small_gamma.model, kg, 1, RelationCache(), 1 << 30, 2)
    assert background.at(torch.arange(3)).isfinite().all()


def test_a_diverged_model_is_refused_with_the_query_named(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    gamma = Gamma.from_config(small_gamma.config, seed=5)
    gamma.scores(town, [7], [1], local=20)
    with torch.no_grad():
        gamma.model.score.out.bias.fill_(torch.nan)
    with pytest.raises(NonFiniteScoreError, match="r1"):
        gamma.scores(town, [7], [1], local=20)


def test_calibration_belongs_to_the_switch(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    gamma = Gamma.from_config(small_gamma.config, seed=5)
    calibration = gamma.calibrate(town, max_hidden=20, local=40)
    assert gamma.calibration(town, 40) is calibration
    assert gamma.calibration(town, "off") is None and gamma.calibration(town, 50) is None


def test_completion_proposes_what_predict_gives(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    near, whole = (complete(small_gamma, town, local=local, top=30).facts for local in (25, "off"))
    assert near != whole
    for fact in near[:5]:
        ends = [
            {p.name: p.score for p in small_gamma.predict(town, **query, relation=fact.relation, local=25, top_k=70)}
            for query in ({"head": fact.head}, {"tail": fact.tail})
        ]
        assert fact.score in (pytest.approx(ends[0][fact.tail]), pytest.approx(ends[1][fact.head]))


def test_a_run_is_not_taken_up_with_another_switch(town: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path) -> None:
    def stop(done: int, in_all: int) -> None:
        if done == 64:
            raise KeyboardInterrupt

    queries: list[tuple[str, Query]] = [("here", (f"e{i}", "r0", None)) for i in range(66)]
    out = tmp_path / "answers.jsonl"
    with pytest.raises(KeyboardInterrupt):
        answer_queries(small_gamma, town, queries, out, top_k=1, local=25, progress=stop)
    with pytest.raises(DataError):
        answer_queries(small_gamma, town, queries, out, top_k=1, local=30)
    assert answer_queries(small_gamma, town, queries, out, top_k=1, local=25) == 66


def test_a_source_with_many_facts_gets_more_room_in_a_dense_graph(
    small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    triples = [(int(h), int(r), int(t)) for h, r, t in rng.integers([100, 3, 100], [200, 4, 200], size=(2600, 3))]
    triples += [(0, 0, other) for other in range(100, 160)]
    kg = KnowledgeGraph(np.unique(triples, axis=0), [f"e{i}" for i in range(200)], [f"r{i}" for i in range(4)])
    facts, crowd = 400, int(kg.edges.degrees(torch.tensor([0])))
    assert 2 * kg.num_triples / kg.num_entities >= DENSE and ROOM * facts < kg.num_triples
    few = next(e for e in range(100, 200) if int(kg.edges.degrees(torch.tensor([e]))) < crowd)
    asked = {"head": "e0", "relation": "r0", "local": facts, "rules": False}
    monkeypatch.setattr(switch, "CROWDED", (crowd - 1) / facts)
    source, relation = torch.tensor([few, 0, 0, few]), torch.tensor([1, 4, 0, 6])
    found = small_gamma.scores(kg, source, relation, local=facts)
    why = small_gamma.explain(kg, tail="e199", **asked)
    best = small_gamma.predict(kg, include_known=True, top_k=200, **asked)
    assert {p.local for p in best} == {why.local} == {ROOM * facts}
    assert why.score == pytest.approx(next(p.score for p in best if p.name == "e199"), abs=1e-5)
    monkeypatch.setattr(switch, "CROWDED", crowd)  # nobody has so many
    for q, size in enumerate((facts, ROOM * facts, ROOM * facts, facts)):
        assert 0 < len(grow(kg.edges, source[q : q + 1], size).entity_N) < kg.num_entities
        expected = small_gamma.scores(kg, source[q : q + 1], relation[q : q + 1], local=size)[0]
        torch.testing.assert_close(found[q], expected, rtol=0, atol=1e-6)
