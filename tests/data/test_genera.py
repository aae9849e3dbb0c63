"""The wider class that a definition names is a fact only where nothing else says so."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gamma_kg import KnowledgeGraph
from gamma_kg.data.genera import new_genera
from gamma_kg.graph.store.index import index_files

OBO = """format-version: 1.2
ontology: go

[Term]
id: GO:1
name: regulation

[Term]
id: GO:2
name: regulation of growth
is_a: GO:1
intersection_of: GO:1
intersection_of: regulates GO:9

[Term]
id: GO:3
name: regulation of cell growth
is_a: GO:2
intersection_of: GO:1
intersection_of: regulates GO:8

[Term]
id: GO:4
name: regulation of anything else
intersection_of: GO:1
intersection_of: regulates GO:7
"""
OWL = """@prefix : <http://g.example/#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
:regulation a owl:Class . :growth rdfs:subClassOf :regulation . :cellGrowth rdfs:subClassOf :growth ;
  owl:equivalentClass [ owl:intersectionOf ( :regulation [ a owl:Restriction ; owl:onProperty :regulates ;
    owl:someValuesFrom :cells ] ) ] .
:other owl:equivalentClass [ owl:intersectionOf ( :regulation [ a owl:Restriction ; owl:onProperty :regulates ;
    owl:someValuesFrom :rest ] ) ] .
:stated rdfs:subClassOf :growth , [ owl:intersectionOf ( :regulation :rest ) ] .
"""


def facts(path: Path) -> set[tuple[str, str, str]]:
    kg = KnowledgeGraph.from_file(path, progress=False)
    names = ((kg.entities[h], kg.relations[r], kg.entities[t]) for h, r, t in kg.triples.tolist())
    return {(h.split(":")[-1], r.split(":")[-1], t.split(":")[-1]) for h, r, t in names}


def test_a_genus_to_which_a_chain_leads_is_no_fact_in_obo_files_and_stores(tmp_path: Path) -> None:
    (tmp_path / "go.obo").write_text(OBO)
    found = facts(tmp_path / "go.obo")
    assert ("regulation of cell growth", "subClassOf", "regulation") not in found
    assert ("regulation of growth", "subClassOf", "regulation") in found
    assert {("regulation of cell growth", "GO_8")} <= {(h, t) for h, r, t in found if "regulates" in r}
    assert ("regulation of anything else", "subClassOf", "regulation") in found, "nothing else says so"
    index_files([tmp_path / "go.obo"], tmp_path / "go.gamma")
    assert facts(tmp_path / "go.gamma") == found


def test_the_same_holds_in_owl_and_what_is_stated_stays(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text(OWL)
    found = facts(tmp_path / "g.ttl")
    assert ("cellGrowth", "subClassOf", "regulation") not in found and ("cellGrowth", "regulates", "cells") in found
    assert ("other", "subClassOf", "regulation") in found
    assert ("stated", "subClassOf", "regulation") in found, "an axiom and no definition"


@given(
    st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=14),
    st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=8),
)
def test_what_is_under_what_never_changes(hierarchy: set[tuple[str, str]], genera: set[tuple[str, str]]) -> None:
    def under(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
        found = {(a, b) for a, b in pairs if a != b}
        while more := {(a, d) for a, b in found for c, d in found if b == c and a != d} - found:
            found |= more
        return found

    kept = set(new_genera(sorted(genera), sorted(hierarchy)))
    assert kept <= genera and under(hierarchy | kept) == under(hierarchy | genera)
