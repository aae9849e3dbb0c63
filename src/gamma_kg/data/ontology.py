"""An ontology as a graph of facts: what OWL says with blank nodes becomes relations, its plumbing stays out.

| in the file                                             | in the graph                                  |
|---------------------------------------------------------|-----------------------------------------------|
| A ⊑ p some B, p value b, p min 1 B, p exactly 1 B       | (A, p, B); (B, p, A) where p is an inverse    |
| A ⊑ B and C …, A ≡ B and C …                            | what each part gives, (A, subClassOf, B);     |
|                                                         | of a definition (≡) what is new (`genera.py`) |
| A ≡ B or C; A ≡ {a, b}                                  | (B, subClassOf, A); (a, type, A)              |
| disjoint classes, domain, range, kinds of properties    | axioms, which rule answers out                |
| A ≡ an expression                                       | an axiom too: what is under A is for reasoners |
| declarations, annotations, obsolete terms               | nothing                                       |
| the ontology's own header and all that is said of it    | nothing                                       |
| shapes (SHACL), owl:Thing and owl:Nothing               | nothing                                       |

OWL2Vec* and relation-graph do the same. A file without such constructs is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.genera import new_genera

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SHACL = "http://www.w3.org/ns/shacl#"
TYPE, FIRST, REST = RDF + "type", RDF + "first", RDF + "rest"
SUBCLASS, EQUIVALENT = RDFS + "subClassOf", OWL + "equivalentClass"
# A blank node with one of these is part of a construct, not a thing.
STRUCTURE = {FIRST, REST} | {
    OWL + name
    for name in (
        "onProperty onClass someValuesFrom allValuesFrom hasValue hasSelf intersectionOf unionOf complementOf oneOf "
        "inverseOf members distinctMembers annotatedSource annotatedProperty annotatedTarget propertyChainAxiom "
        "sourceIndividual assertionProperty targetIndividual onDatatype withRestrictions onProperties hasKey"
    ).split()
}
PLUMBING = {
    *(OWL + name for name in "imports versionIRI priorVersion backwardCompatibleWith incompatibleWith".split()),
    *(OWL + name for name in "annotatedSource annotatedProperty annotatedTarget propertyChainAxiom hasKey".split()),
    RDFS + "isDefinedBy",
    RDFS + "seeAlso",
}
DECLARED = {OWL, RDFS, RDF, SHACL}
# Everything is a thing, and what a reasoner found to be nothing is a mistake: neither is a class to be under.
TOP_AND_BOTTOM = {OWL + name for name in ("Thing", "Nothing", "topObjectProperty", "bottomObjectProperty")}
UPWARD = {SUBCLASS, EQUIVALENT, RDFS + "subPropertyOf"}
PROPERTY_KINDS = {
    OWL + "FunctionalProperty": "functional",
    OWL + "InverseFunctionalProperty": "inverse functional",
    OWL + "AsymmetricProperty": "asymmetric",
    OWL + "IrreflexiveProperty": "irreflexive",
    OWL + "SymmetricProperty": "symmetric",
    OWL + "TransitiveProperty": "transitive",
}
PROPERTIES = {OWL + "ObjectProperty", OWL + "DatatypeProperty", RDF + "Property"}
CLASSES = {OWL + "Class", RDFS + "Class"}
AXIOM_RELATIONS = {
    OWL + "disjointWith": "disjoint",
    OWL + "complementOf": "disjoint",
    RDFS + "domain": "domain",
    RDFS + "range": "range",
}
FILLERS = (OWL + "someValuesFrom", OWL + "hasValue", OWL + "onClass")
CARDINALITIES = {OWL + name for name in ("minQualifiedCardinality", "qualifiedCardinality", "minCardinality")}
MAX_DISJOINT = 500  # members of one list, all pairs of which are disjoint
MAX_HELD = 5_000_000  # facts about blank nodes that are held back until all has been read

Axiom = tuple[str, str, str]  # kind, IRI, second IRI or ""
Triple = tuple[str, str, str]


@dataclass
class OntologyReader:
    """Takes triples by name; keeps constructs and plumbing to itself, and turns them into facts at the end."""

    num_plumbing: int = 0
    _axioms: dict[Axiom, None] = field(default_factory=dict)  # in the order of the file
    _held: list[Triple] = field(default_factory=list)
    _annotations: set[str] = field(default_factory=set)
    _obsolete: set[str] = field(default_factory=set)
    _may_be_zero: set[str] = field(default_factory=set)
    _declared: set[str] = field(default_factory=set)
    _classes: dict[str, None] = field(default_factory=dict)
    _headers: set[str] = field(default_factory=set)
    _genera: dict[tuple[str, str], None] = field(default_factory=dict)
    _is_ontology: bool = False
    _has_individuals: bool = False

    def declare(self, term: str) -> None:
        """Notes a term that is the ontology's own, not just referred to."""
        self._declared.add(term)

    def declare_class(self, term: str) -> None:
        """Notes a term that is a class."""
        self._classes[term] = None

    def add_axiom(self, kind: str, first: str, second: str = "") -> None:
        """Notes what is said of a class or a property, once."""
        self._axioms[kind, first, second] = None

    def add_genus(self, own: str, genus: str) -> None:
        """Notes the wider class that a definition goes back to."""
        self._genera[own, genus] = None

    @property
    def axioms(self) -> list[Axiom]:
        return list(self._axioms)

    def takes(self, head: str, relation: str, tail: str) -> bool:
        """Whether the triple is kept here instead of being a fact as it is."""
        if head.startswith("_:") or tail.startswith("_:"):
            if len(self._held) >= MAX_HELD:
                return False
            self._held.append((head, relation, tail))
            self._is_ontology |= relation in STRUCTURE
            return True
        return self._takes_named(head, relation, tail)

    def take_literal(self, head: str, relation: str, text: str) -> None:
        """Literals that decide: obsolete terms, and cardinalities that allow for none."""
        if relation == OWL + "deprecated" and text.lower() in ("true", "1"):
            self._obsolete.add(head)
        elif relation in CARDINALITIES and text.strip() == "0":
            self._may_be_zero.add(head)

    def finish(self, encoder: TripleEncoder) -> str | None:
        """Adds the facts that constructs state, drops obsolete terms and annotations; says what was done."""
        facts = list(dict.fromkeys(self._project()))
        self._held.clear()
        self._has_individuals |= any(relation == TYPE for _, relation, _ in facts)
        encoder.add_rows(facts)
        genera = [(own, SUBCLASS, genus) for own, genus in new_genera(self._genera, encoder.pairs(SUBCLASS))]
        self._genera.clear()
        encoder.add_rows(genera)
        facts += genera
        dropped = encoder.num_triples
        # An annotation property is plumbing as a relation and as a thing (below another one, say).
        unwanted = self._annotations if self._is_ontology else set()
        things = self._obsolete | unwanted
        if 2 * len(self._headers) < len(self._declared):  # else the file is a catalogue, and ontologies are its things
            things |= self._headers
        if things:
            encoder.drop(things, unwanted)
        dropped -= encoder.num_triples
        if self._has_individuals:  # else all are classes or properties
            for iri in self._classes:
                if iri not in things:
                    self.add_axiom("class", iri)
        outside = dict[str, None]()
        for iri in encoder.entity_names():
            if len(outside) >= len(self._declared):  # the file is data with a few classes, not a vocabulary
                outside.clear()
                break
            if iri not in self._declared and not iri.startswith(("_:", '"')):
                outside[iri] = None
        for iri in outside:
            self.add_axiom("outside", iri)
        if not self._is_ontology:
            return None
        stated = sum(1 for fact in facts if not fact[0].startswith("_:") and not fact[2].startswith("_:"))
        return (
            f"read as an ontology: {stated:,} facts from class expressions; {self.num_plumbing + dropped:,} triples of "
            f"declarations and annotations, {len(self._obsolete):,} obsolete terms left out (--ontology off keeps all)"
        )

    def _takes_named(self, head: str, relation: str, tail: str) -> bool:
        if _is_plumbing(head, relation, tail):
            self._is_ontology |= relation not in PLUMBING
            self.num_plumbing += 1
            return True
        if relation == TYPE and _namespace(tail) in DECLARED:
            if tail in PROPERTY_KINDS:
                self.add_axiom(PROPERTY_KINDS[tail], head)
            elif tail == OWL + "AnnotationProperty":
                self._annotations.add(head)
            elif tail in PROPERTIES:
                self.add_axiom("property", head)
            elif tail in CLASSES:
                self.declare_class(head)
            elif tail == OWL + "Ontology":
                self._headers.add(head)
            self.declare(head)
            self._is_ontology |= tail in (OWL + "Class", OWL + "Ontology", RDFS + "Class", OWL + "ObjectProperty")
            self.num_plumbing += 1
            return True
        self._has_individuals |= relation == TYPE
        if relation in AXIOM_RELATIONS:
            self.add_axiom(AXIOM_RELATIONS[relation], head, tail)
            return True
        if relation == OWL + "inverseOf":
            self.add_axiom("inverse", head, tail)
            return True
        return False

    def _project(self) -> Iterator[Triple]:
        """Facts behind the constructs; blank nodes that are things of their own stay as they are."""
        nodes = _Nodes(self._held, self._may_be_zero)
        for head, relation, tail in self._held:
            if nodes.is_construct(head):
                if (relation, tail) == (TYPE, OWL + "AllDisjointClasses"):
                    self._add_disjoint(nodes.members(nodes.one(head, OWL + "members")))
                continue
            if not nodes.is_construct(tail):
                if not _is_plumbing(head, relation, tail):
                    yield head, relation, tail
            elif relation in (SUBCLASS, EQUIVALENT, TYPE):
                upward = TYPE if relation == TYPE else SUBCLASS
                stated = list(nodes.facts(head, upward, tail, is_equal=relation == EQUIVALENT))
                self._add_stated(head, stated)
                if relation == EQUIVALENT:
                    self.add_axiom("defined", head)
                yield from self._without_genera(head, stated) if relation == EQUIVALENT else stated
            elif relation in (OWL + "unionOf", OWL + "disjointUnionOf"):
                members = nodes.members(tail)
                self.add_axiom("defined", head)
                yield from ((member, SUBCLASS, head) for member in members if not member.startswith("_:"))
                if relation == OWL + "disjointUnionOf":
                    self._add_disjoint(members)
            elif relation in (OWL + "intersectionOf", OWL + "oneOf"):
                stated = list(nodes.list_facts(head, relation, tail))
                self._add_stated(head, stated)
                self.add_axiom("defined", head)
                yield from self._without_genera(head, stated)

    def _without_genera(self, head: str, facts: list[Triple]) -> Iterator[Triple]:
        """What a definition states but for the wider classes, which wait until the hierarchy is known."""
        for fact in facts:
            if fact[:2] == (head, SUBCLASS):
                self.add_genus(head, fact[2])
            else:
                yield fact

    def _add_stated(self, head: str, facts: list[Triple]) -> None:
        """Notes properties that are stated of every member of a class: they hold for all that is below it."""
        for start, relation, _ in facts:
            if start == head and relation not in (SUBCLASS, TYPE):
                self.add_axiom("some", relation)

    def _add_disjoint(self, members: list[str]) -> None:
        named = [member for member in members if not member.startswith("_:")][:MAX_DISJOINT]
        for a, b in combinations(named, 2):
            self.add_axiom("disjoint", a, b)


class _Nodes:
    """What is said of each blank node."""

    def __init__(self, triples: list[Triple], may_be_zero: set[str]) -> None:
        self._said: dict[str, dict[str, list[str]]] = {}
        self._may_be_zero = may_be_zero
        for head, relation, tail in triples:
            if head.startswith("_:"):
                self._said.setdefault(head, {}).setdefault(relation, []).append(tail)

    def is_construct(self, node: str) -> bool:
        said = self._said.get(node)
        if said is None:
            # Nothing is said of it: the end of a list that was cut off, or a thing that only others point to.
            return False
        return any(
            relation in STRUCTURE
            or relation.startswith(SHACL)
            or (relation == TYPE and any(_namespace(tail) in (OWL, SHACL) for tail in tails))
            for relation, tails in said.items()
        )

    def one(self, node: str, relation: str) -> str:
        return self._said.get(node, {}).get(relation, [""])[0]

    def members(self, node: str) -> list[str]:
        """The elements of an RDF list; a list that bites its own tail ends there."""
        found, seen = [], set()
        while node in self._said and node not in seen:
            seen.add(node)
            found.append(self.one(node, FIRST))
            node = self.one(node, REST)
        return [member for member in found if member]

    def facts(
        self, head: str, upward: str, node: str, is_equal: bool, seen: set[str] | None = None
    ) -> Iterator[Triple]:
        """Facts about `head` that follow from its being under (or equal to) the class expression at `node`.

        Each part is looked at once: expressions in a circle end, and those made to explode do not.
        """
        seen = set() if seen is None else seen
        if node in seen:
            return
        seen.add(node)
        if not node.startswith("_:"):
            yield head, upward, node
            return
        for relation in (OWL + "intersectionOf", OWL + "oneOf", OWL + "unionOf"):
            if is_equal or relation == OWL + "intersectionOf":
                for listed in self._said.get(node, {}).get(relation, ()):
                    yield from self.list_facts(head, relation, listed, upward, seen)
        yield from self._restriction(head, node)

    def list_facts(
        self, head: str, relation: str, listed: str, upward: str = SUBCLASS, seen: set[str] | None = None
    ) -> Iterator[Triple]:
        seen = set() if seen is None else seen
        for member in self.members(listed):
            if relation == OWL + "intersectionOf":
                yield from self.facts(head, upward, member, is_equal=False, seen=seen)
            elif not member.startswith("_:"):
                yield (member, TYPE if relation == OWL + "oneOf" else SUBCLASS, head)

    def _restriction(self, head: str, node: str) -> Iterator[Triple]:
        said = self._said.get(node, {})
        property_ = self.one(node, OWL + "onProperty")
        if not property_ or node in self._may_be_zero:
            return
        is_back = property_.startswith("_:")
        if is_back:
            property_ = self.one(property_, OWL + "inverseOf")
        has_count = any(relation in said for relation in FILLERS[:2])
        for relation in FILLERS:
            if relation == FILLERS[2] and has_count:
                continue
            for filler in said.get(relation, ()):
                for named in self._named_parts(filler, set()):
                    if property_ and not property_.startswith("_:"):
                        yield (named, property_, head) if is_back else (head, property_, named)

    def _named_parts(self, node: str, seen: set[str]) -> Iterator[str]:
        """A filler, or the named classes that it is an intersection of."""
        if node in seen:
            return
        seen.add(node)
        if not node.startswith("_:"):
            if not node.startswith('"'):
                yield node
        else:
            for member in self.members(self.one(node, OWL + "intersectionOf")):
                yield from self._named_parts(member, seen)


def _is_plumbing(head: str, relation: str, tail: str) -> bool:
    if relation in PLUMBING or relation.startswith(SHACL) or not TOP_AND_BOTTOM.isdisjoint((head, tail)):
        return True
    # A class under rdfs:Resource or owl:Class says what kind of thing a class is; a vocabulary of such is a graph.
    return relation in UPWARD and _namespace(tail) in DECLARED and _namespace(head) not in DECLARED


def _namespace(iri: str) -> str:
    return iri[: iri.rfind("#") + 1]
