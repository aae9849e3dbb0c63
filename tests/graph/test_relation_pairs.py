import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg import KnowledgeGraph
from gamma_kg.graph.relation_graph import EDGE_TYPES
from gamma_kg.graph.relation_pairs import PAIR_TYPES


def meetings(kg: KnowledgeGraph) -> set[tuple[int, int, int]]:
    graph = kg.relation_graph
    return set(zip(*(column.tolist() for column in graph.slice(0, graph.num_edges)), strict=True))


PAIR = {name: len(EDGE_TYPES) + number for number, name in enumerate(PAIR_TYPES)}


def pair_edges(kg: KnowledgeGraph) -> set[tuple[int, int, int]]:
    graph = kg.relation_graph_as("pairs")
    found = set(zip(*(column.tolist() for column in graph.slice(0, graph.num_edges)), strict=True))
    assert {edge for edge in found if edge[1] < len(EDGE_TYPES)} == meetings(kg), "the meetings stay as they are"
    return {edge for edge in found if edge[1] >= len(EDGE_TYPES)}


def test_pairs_tell_a_symmetric_relation_from_a_hierarchy() -> None:
    married = [("a", "married", "b"), ("b", "married", "a"), ("c", "married", "d"), ("d", "married", "c")]
    parent = [("a", "parent", "e"), ("b", "parent", "e"), ("c", "parent", "f"), ("d", "parent", "f")]
    found = pair_edges(KnowledgeGraph.from_triples(married + parent))
    r, p, num = 0, 1, 2
    assert (r, PAIR["same"], r + num) in found and (r + num, PAIR["same"], r) in found
    assert (p, PAIR["never"], p + num) in found and (p + num, PAIR["never"], p) in found
    assert len(found) == 4


def test_pairs_know_which_relation_implies_which() -> None:
    """Every mother is a parent; two parents of seven are mothers, which is too few to be implied."""
    parents = [(str(i), "parent", f"child {i}") for i in range(7)]
    found = pair_edges(KnowledgeGraph.from_triples([*parents, *((h, "mother", t) for h, _, t in parents[:2])]))
    parent, mother, num = 0, 1, 2
    assert (mother, PAIR["implies"], parent) in found and (parent, PAIR["implied"], mother) in found
    assert (mother + num, PAIR["implies"], parent + num) in found, "and so do the inverses"
    assert (mother, PAIR["never"], mother + num) not in found, "two pairs say nothing of the direction"


def test_a_single_common_pair_and_a_loop_are_no_pattern() -> None:
    facts = [("a", "r", "b"), ("a", "s", "b"), ("c", "r", "c"), ("c", "s", "c")]
    assert pair_edges(KnowledgeGraph.from_triples(facts)) == set()


def slow_pairs(triples: np.ndarray, R: int) -> set[tuple[int, int, int]]:
    """The definition, with sets."""
    pairs: dict[int, set[tuple[int, int]]] = {r: set() for r in range(2 * R)}
    for h, r, t in triples.tolist():
        if h != t:
            pairs[r].add((h, t))
            pairs[r + R].add((t, h))
    found = set()
    for i, mine in pairs.items():
        for j, others in pairs.items():
            common = len(mine & others)
            if j == (i + R) % (2 * R) and len(mine) >= 3 and common < 0.02 * len(mine):
                found.add((i, PAIR["never"], j))
            elif i != j and common >= 2:
                forward, backward = common >= 0.3 * len(mine), common >= 0.3 * len(others)
                name = ("same" if backward else "implies") if forward else ("implied" if backward else "sometimes")
                found.add((i, PAIR[name], j))
    return found


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=40))
def test_common_pairs_equal_the_definition(triples: list[tuple[int, int, int]]) -> None:
    array = np.asarray(triples)
    kg = KnowledgeGraph(array, [str(i) for i in range(5)], [str(i) for i in range(3)], keep_duplicates=True)
    assert pair_edges(kg) == slow_pairs(array, 3)
