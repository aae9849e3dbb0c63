from pathlib import Path

import polars as pl
import pytest

from gamma_kg import DataError, KnowledgeGraph, UnknownNameError


def test_ids_follow_the_first_appearance(family: KnowledgeGraph) -> None:
    assert family.entities == ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Nairobi"]
    assert family.relations == ["mother of", "father of", "sibling of", "married to", "lives in"]
    assert family.triples[0].tolist() == [0, 0, 1]
    assert (family.num_entities, family.num_relations, family.num_triples) == (8, 5, 11)


def test_given_lists_fix_the_vocabulary() -> None:
    kg = KnowledgeGraph.from_triples([("b", "r", "a")], entities=["a", "b", "alone"], relations=["r", "unused"])
    assert kg.triples.tolist() == [[1, 0, 0]]
    assert (kg.num_entities, kg.num_relations) == (3, 2)
    assert kg.entity_id("alone") == 2


def test_a_name_outside_the_given_list_is_refused() -> None:
    with pytest.raises(DataError, match="'c'"):
        KnowledgeGraph.from_triples([("c", "r", "a")], entities=["a", "b"])


def test_repeated_triples_count_once_unless_they_are_kept() -> None:
    twice = [("a", "r", "b"), ("c", "r", "b"), ("a", "r", "b")]
    assert KnowledgeGraph.from_triples(twice).triples.tolist() == [[0, 0, 1], [2, 0, 1]]
    assert KnowledgeGraph.from_triples(twice, keep_duplicates=True).num_triples == 3


def test_every_edge_has_its_inverse(family: KnowledgeGraph) -> None:
    node, type_, neighbour = family.edges.slice(0, family.edges.num_edges)
    edges = set(zip(node.tolist(), type_.tolist(), neighbour.tolist(), strict=True))
    assert len(edges) == 22
    assert {(v, int(family.edges.inverse[r]), u) for u, r, v in edges} == edges
    assert family.inverse(family.inverse(type_)).equal(type_)


def test_answers_are_the_known_completions_in_both_directions(family: KnowledgeGraph) -> None:
    mother, bob = family.relation_id("mother of"), family.entity_id("Bob")
    names = {family.entities[i] for i in family.answers(family.entity_id("Ann"), mother).tolist()}
    assert names == {"Bob", "Cleo"}
    assert family.answers(bob, mother + family.num_relations).tolist() == [family.entity_id("Ann")]
    assert family.answers(bob, mother).tolist() == []
    assert family.answers(family.entity_id("Nairobi"), 0).tolist() == []


@pytest.mark.parametrize(("asked", "suggested"), [("Nairobbi", "Nairobi"), ("Clio", "Cleo")])
def test_an_unknown_name_suggests_the_nearest(family: KnowledgeGraph, asked: str, suggested: str) -> None:
    with pytest.raises(UnknownNameError, match=f"no entity is named '{asked}'.*'{suggested}'"):
        family.entity_id(asked)
    with pytest.raises(UnknownNameError, match="'mother of'"):
        family.relation_id("mothr of")


def test_files_and_frames_give_the_same_graph(tmp_path: Path, family: KnowledgeGraph) -> None:
    rows = [(family.entities[h], family.relations[r], family.entities[t]) for h, r, t in family.triples.tolist()]
    frame = pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row")
    frame.write_csv(tmp_path / "facts.tsv", separator="\t", include_header=False)
    frame.select("tail", "head", "relation").write_csv(tmp_path / "facts.csv")
    graphs = [
        KnowledgeGraph.from_file(tmp_path / "facts.tsv"),
        KnowledgeGraph.from_file(tmp_path / "facts.csv", columns=["head", "relation", "tail"]),
        KnowledgeGraph.from_dataframe(frame),
        KnowledgeGraph.from_dataframe(frame.to_pandas()),
    ]
    for kg in graphs:
        assert kg.entities == family.entities and kg.relations == family.relations
        assert kg.triples.equal(family.triples)


def test_ids_out_of_range_are_refused() -> None:
    with pytest.raises(DataError, match=r"tail ids must lie in 0\.\.1; found 0\.\.2"):
        KnowledgeGraph([[0, 0, 0], [0, 0, 2]], ["a", "b"], ["r"])  # type: ignore[arg-type]


def test_the_name_tells_the_sizes(family: KnowledgeGraph) -> None:
    assert repr(family) == "KnowledgeGraph(8 entities, 5 relations, 11 triples)"
