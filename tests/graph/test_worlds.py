import numpy as np
import pytest

from gamma_kg.graph import worlds
from gamma_kg.graph.sampling import RuleWorlds, SubgraphOptions
from gamma_kg.graph.worlds import make_world


def test_each_draw_is_another_world_and_the_same_seed_the_same_one() -> None:
    first, again, other = (make_world(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_worlds_have_facts_of_several_relations_and_no_loops() -> None:
    for seed in range(20):
        triples = make_world(np.random.default_rng(seed), (100, 300))
        assert len(np.unique(triples, axis=0)) == len(triples) > 0
        assert (triples[:, 0] != triples[:, 2]).all()
        assert triples[:, [0, 2]].max() < 300


def test_rules_leave_traces_that_chance_does_not() -> None:
    """In many worlds a relation holds for most pairs of another one; shuffled tails would share almost none."""
    shares = []
    for seed in range(30):
        triples = make_world(np.random.default_rng(seed), (200, 400))
        pairs = [{(h, t) for h, r, t in triples.tolist() if r == number} for number in np.unique(triples[:, 1])]
        both = [p | {(t, h) for h, t in p} for p in pairs]
        shares.append(max(len(a & b) / len(a) for a in pairs for b in both if a is not pairs[both.index(b)]))
    assert np.mean(np.asarray(shares) > 0.5) > 0.5


def test_a_world_is_drawn_like_a_piece_of_a_graph() -> None:
    piece = RuleWorlds().sample(SubgraphOptions(entities=(50, 200), drop_chance=1.0), np.random.default_rng(3))
    assert piece.num_entities == len(np.unique(piece.triples[:, [0, 2]]))
    assert piece.num_relations == len(np.unique(piece.triples[:, 1]))
    assert len(piece.hidden), "facts that were left out are known to be right"


def test_a_rule_that_asks_for_a_mark_keeps_the_tails_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "RULES", ("marked",))
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mark = np.arange(400) % 2 == 0
        world = worlds.World(rng, [np.arange(400)], 400, [mark])
        world.relations.append(worlds._base(world))
        if (derived := worlds._derived(world)) is not None:
            # A hub may be most of the facts: each tail counts once. Up to a quarter of the facts is noise.
            of_tails = mark[np.unique(derived.facts.nonzero()[1])].mean()
            shares.append(max(of_tails, 1 - of_tails))
    assert len(shares) > 10 and np.mean(shares) > 0.8
