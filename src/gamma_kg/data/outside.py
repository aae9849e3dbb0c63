"""Graphs that live in other Python libraries: rdflib and networkx. Neither is needed unless it is used."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.names import RdfNames
from gamma_kg.data.options import Tally
from gamma_kg.data.rdf import QuadCollector
from gamma_kg.data.read import EncodedTriples, encode_triples, read_options
from gamma_kg.errors import DataError


def encode_rdflib(graph: Any, **choices: Any) -> EncodedTriples:
    """Triples of an `rdflib.Graph` (of a dataset: of all its graphs); `choices` are those of `ReadOptions`."""
    if not hasattr(graph, "triples") or not hasattr(graph, "namespaces"):
        raise DataError(f"expected an rdflib graph, got {type(graph).__name__}")
    tally = Tally(read_options(choices), files=["rdflib graph"])
    encoder, names = TripleEncoder(), RdfNames(tally.options.label_properties, tally.options.languages)
    collector = QuadCollector(encoder, tally, names)
    for triple in graph.triples((None, None, None)):
        try:
            subject, predicate, object_ = map(_term, triple)
        except ValueError as error:
            tally.bad(f"the rdflib graph: {error} in {' '.join(map(str, triple))[:200]!r}")
            continue
        collector.add(subject, predicate, object_)  # type: ignore[arg-type]
    collector.flush()
    if tally.ontology is not None:
        note = tally.ontology.finish(encoder)
        tally.notes.extend([note] if note else [])
    collector.add_prefixes({prefix: str(iri) for prefix, iri in graph.namespaces()})
    if encoder.num_triples == 0:
        raise DataError(f"the rdflib graph: no triples found ({tally.report(0)})")
    entities, relations = names.vocabularies(encoder)
    return EncodedTriples(encoder.triples(), entities, relations, tally.report(encoder.num_triples))


def encode_networkx(graph: Any, relation: str = "relation", default: str = "linked to") -> EncodedTriples:
    """Edges of a networkx graph. The relation is the edge's attribute `relation`, else the text key of a multigraph's
    edge, else `default`; an edge without a direction is a fact both ways."""
    if not hasattr(graph, "edges") or not hasattr(graph, "is_directed"):
        raise DataError(f"expected a networkx graph, got {type(graph).__name__}")
    facts = []
    edges = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    for edge in edges:
        head, tail, facts_of_edge = edge[0], edge[1], edge[-1]
        key = edge[2] if len(edge) == 4 and isinstance(edge[2], str) else default
        name = str(facts_of_edge.get(relation, key))
        facts.append((str(head), name, str(tail)))
        if not graph.is_directed() and head != tail:
            facts.append((str(tail), name, str(head)))
    return encode_triples(facts)


def _term(term: Any) -> object:
    """The pyoxigraph term for one of rdflib; they are told apart by name, so that rdflib need not be imported."""
    kind = type(term).__name__
    if kind == "URIRef":
        return ox.NamedNode(str(term))
    if kind == "BNode":
        return ox.BlankNode(str(term))
    if kind == "Literal":
        if term.language:
            return ox.Literal(str(term), language=term.language)
        return (
            ox.Literal(str(term), datatype=ox.NamedNode(str(term.datatype))) if term.datatype else ox.Literal(str(term))
        )
    raise ValueError(f"a term of the kind {kind}")
