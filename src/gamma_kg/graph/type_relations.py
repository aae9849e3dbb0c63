"""Relations that say what kind of thing an entity is, known by what the common vocabularies call them."""

from __future__ import annotations

from gamma_kg.data.vocabulary import Names

TYPE_NAMES = frozenset(
    ("type", "rdf:type", "is a", "is_a", "isa", "instance of", "instance_of", "instanceof", "a", "p31", "category")
)


def says_type(names: Names, relation: int) -> bool:
    """Whether a relation, by its name or the end of its IRI, says what its heads are."""
    identifier = names.identifier(relation)
    ends = {names[relation], identifier, identifier.rsplit("#", 1)[-1], identifier.rsplit("/", 1)[-1]}
    return any(end.casefold() in TYPE_NAMES for end in ends)
