import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
import torch

from gamma_kg import ConfigError, DataError, Gamma, GammaConfig, KnowledgeGraph
from gamma_kg.errors import NonFiniteScoreError
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.machine.memory import budget, free_memory, parse_memory
from gamma_kg.predicting import inference
from gamma_kg.predicting.inference import batch_size
from gamma_kg.predicting.relation_cache import RelationCache, relation_states


def queries(kg: KnowledgeGraph) -> tuple[torch.Tensor, torch.Tensor]:
    pairs = torch.cartesian_prod(torch.arange(kg.num_entities), torch.arange(2 * kg.num_relations))
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(1))
    return pairs[order, 0], pairs[order, 1]


def test_batches_of_any_size_give_the_same_scores(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    source, relation = queries(family)
    expected = small_gamma.scores(family, source, relation)
    for memory in ("1", "30KB", "200KB"):
        torch.testing.assert_close(small_gamma.scores(family, source, relation, memory), expected, rtol=0, atol=1e-5)
    assert batch_size(small_gamma.model, family, 1) == 1 < batch_size(small_gamma.model, family, 30 << 10)


def test_a_batch_is_small_enough_for_its_states_to_stay_in_cache(
    family: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, relation = queries(family)
    expected = small_gamma.scores(family, source, relation)
    config = small_gamma.config
    monkeypatch.setattr(inference, "CACHED_BYTES", 5 * 4 * config.dim * config.num_branches * family.num_entities)
    sizes = []
    handle = small_gamma.model.branches[0].register_forward_hook(lambda *call: sizes.append(len(call[1][1])))
    try:
        torch.testing.assert_close(small_gamma.scores(family, source, relation), expected, rtol=0, atol=1e-5)
    finally:
        handle.remove()
    assert max(sizes) == 5 and sum(sizes) == len(source)


def test_a_model_in_training_answers_without_dropout_and_goes_on_training(family: KnowledgeGraph) -> None:
    gamma = Gamma.from_config(GammaConfig(dim=8, num_layers=2, attention_dim=8, attention_dropout=0.5))
    source, relation = queries(family)
    expected = gamma.scores(family, source, relation)
    gamma.model.train()
    assert torch.equal(gamma.scores(family, source, relation), expected)
    assert gamma.model.training and gamma.model.score.training


def test_scores_come_in_the_order_of_the_queries(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    source, relation = queries(family)
    scores = small_gamma.scores(family, source, relation)
    for i in (0, 7, 33):
        alone = small_gamma.scores(family, [int(source[i])], [int(relation[i])])
        torch.testing.assert_close(scores[i], alone[0], rtol=0, atol=1e-5)


def test_a_query_has_the_same_bits_alone_and_with_others(family: KnowledgeGraph) -> None:
    gamma = Gamma.from_pretrained()
    source, relation = queries(family)
    together = gamma.scores(family, source, relation)
    for count in (1, 2, 3, 5, 17):
        few = gamma.scores(family, source[:count], relation[:count])
        assert torch.equal(few, together[:count]), f"{count} queries"


def test_a_repeated_query_is_computed_once(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    seen = 0

    def count(_module: object, arguments: tuple[object, ...], _out: object) -> None:
        nonlocal seen
        seen += len(arguments[1])  # type: ignore[arg-type]

    handle = small_gamma.model.branches[0].register_forward_hook(count)
    try:
        scores = small_gamma.scores(family, [2, 5, 2, 2, 5], [1, 1, 1, 6, 1])
    finally:
        handle.remove()
    assert seen == 3
    assert scores[0].equal(scores[2]) and scores[1].equal(scores[4]) and not scores[0].equal(scores[3])


def test_relation_states_are_computed_once_per_graph_and_relation(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    asked: list[int] = []
    handle = small_gamma.model.relation_encoder.register_forward_hook(
        lambda _m, args, _o: asked.extend(args[1].node_S.tolist())
    )
    try:
        small_gamma.scores(family, [0, 1, 2], [0, 1, 5])  # 5 is the inverse of 0 and shares its states
        small_gamma.scores(family, [3], [1])
        assert sorted(asked) == [0, 1]
        with torch.no_grad():
            next(small_gamma.model.relation_encoder.parameters()).mul_(1.0)
        small_gamma.scores(family, [3], [1])
        assert sorted(asked) == [0, 1, 1], "changed weights make the kept states void"
    finally:
        handle.remove()


def test_kept_relation_states_go_with_the_graph(small_gamma: Gamma) -> None:
    kg = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "s", "c")])
    small_gamma.scores(kg, [0], [0])
    with small_gamma._cache._graphs.of(small_gamma.model, kg) as kept:
        state = weakref.ref(next(iter(kept.values())).state_1RQ)
    del kg, kept
    gc.collect()
    assert state() is None


def test_scoring_leaves_the_training_mode_as_it_was(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    small_gamma.model.train()
    small_gamma.scores(family, [0], [0])
    assert small_gamma.model.training
    small_gamma.model.eval()


def test_no_query_gives_no_rows(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    assert small_gamma.scores(family, [], []).shape == (0, 8)


@pytest.mark.parametrize(
    ("sources", "relations", "complaint"),
    [
        ([8], [0], r"source ids must lie in 0\.\.7"),
        ([0], [10], r"relation ids must lie in 0\.\.9"),
        ([0, 1], [0], "same length"),
    ],
)
def test_ids_that_the_graph_does_not_have_are_refused(
    family: KnowledgeGraph, small_gamma: Gamma, sources: list[int], relations: list[int], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        small_gamma.scores(family, sources, relations)


def test_memory_sizes_are_read_as_people_write_them() -> None:
    assert parse_memory("4GB") == parse_memory("4 GiB") == parse_memory("4g") == 4 << 30
    assert parse_memory("1.5M") == 3 << 19 and parse_memory(77) == 77
    assert 0 < budget(None) <= free_memory()
    for wrong in ("", "much", "-1GB", "0", "4XB"):
        with pytest.raises(ConfigError, match="800MB or 4GB"):
            parse_memory(wrong)


def test_threads_that_ask_at_once_share_one_computation(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    gamma = Gamma(small_gamma.model)
    wanted = small_gamma.scores(family, [0, 1, 2, 3], [0, 1, 2, 3])
    asked: list[int] = []

    def note(_module: object, args: tuple[object, Starts], _out: object) -> None:
        asked.extend(args[1].node_S.tolist())
        time.sleep(0.05)  # long enough for the others to come and ask

    handle = gamma.model.relation_encoder.register_forward_hook(note)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: gamma.scores(family, [0, 1, 2, 3], [0, 1, 2, 3]), range(32)))
    finally:
        handle.remove()
    assert sorted(asked) == [0, 1, 2, 3]
    assert all(scores.equal(wanted) for scores in found)


def test_what_the_cache_lets_go_of_is_freed(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    cache, row_bytes = RelationCache(), 2 * family.num_relations * small_gamma.config.dim * 4
    cache.states(small_gamma.model, family, torch.arange(4), 2 * row_bytes)
    with cache._graphs.of(small_gamma.model, family) as kept:  # the table itself, which goes on changing
        assert len(kept) == 2
    room = 6 * row_bytes  # for the states of all six, and for what the branches make of them, not
    cache.states(small_gamma.model, family, torch.arange(2, 8), room)  # several at once
    assert [one.state_1RQ.untyped_storage().nbytes() for one in kept.values()] == [row_bytes] * 6
    assert [one.tables for one in kept.values()] == [None] * 6
    table_bytes = 2 * family.num_relations * small_gamma.model.table_width * 4
    cache.states(small_gamma.model, family, torch.arange(2, 4), 2 * (row_bytes + table_bytes))
    sizes = [[table.untyped_storage().nbytes() for own in one.tables or () for table in own] for one in kept.values()]
    assert [sum(own) for own in sizes] == [table_bytes] * 2


@pytest.mark.parametrize("name", ["gamma-3", "gamma-5", "ensemble"])
def test_what_branches_make_of_relations_is_made_once_and_gives_the_same_bits(
    family: KnowledgeGraph, name: str
) -> None:
    gamma = Gamma.from_pretrained(name)
    kept, made = RelationCache(), RelationCache()
    asked = torch.tensor([2, 7, 2, 0])  # an inverse relation among them
    with torch.no_grad():
        relations = relation_states(gamma.model, family, asked, kept, 1 << 30)
        anew = relation_states(gamma.model, family, asked, made, 1)._replace(tables=None)
        edges = backend_of(torch.device("cpu")).prepare(family.edges)
        starts = edges.renamed(Starts.single(torch.tensor([0, 1, 2, 3])))
        assert relations.tables is not None
        found = gamma.model.score_entities(edges, relations, starts, asked)
        assert found.score_BC.equal(gamma.model.score_entities(edges, anew, starts, asked).score_BC)
    with mock.patch.object(type(gamma.model), "relation_tables", side_effect=AssertionError("made before")):
        again = relation_states(gamma.model, family, asked, kept, 1 << 30).tables
    assert again is not None
    for one, same in zip(again[0][0], relations.tables[0][0], strict=True):
        assert one.data_ptr() == same.data_ptr()  # where it was made, and no copy


def test_a_change_of_a_branch_is_seen_though_its_relations_are_kept(family: KnowledgeGraph) -> None:
    gamma = Gamma.from_config(GammaConfig(dim=8, num_layers=2), seed=1)
    before = gamma.scores(family, [0], [1])
    with torch.no_grad():
        for branch in gamma.model.branches:
            for parameter in branch.layers[0].relation.parameters():
                parameter.mul_(3)
    assert not gamma.scores(family, [0], [1]).equal(before)


@pytest.mark.parametrize("relation", [1, 6])
def test_scores_that_are_not_numbers_are_refused_and_not_ranked_first(family: KnowledgeGraph, relation: int) -> None:
    gamma = Gamma.from_config(GammaConfig(dim=8, num_layers=2), seed=1)
    with torch.no_grad():
        gamma.model.score.out.bias.fill_(torch.nan)
    query = r"\(Ann, father of, \?\)" if relation == 1 else r"\(\?, father of, Ann\)"
    with pytest.raises(NonFiniteScoreError, match=f"the scores for {query} are not finite"):
        gamma.scores(family, [family.entity_id("Ann")], [relation])
    with pytest.raises(NonFiniteScoreError, match="not finite"):
        gamma.predict(family, head="Ann", relation="father of")
    with pytest.raises(NonFiniteScoreError, match="nothing to explain"):
        gamma.explain(family, head="Ann", relation="father of", tail="Bob")
