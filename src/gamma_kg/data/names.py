"""What people see instead of IRIs: labels where there are some, else prefixed names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.vocabulary import Vocabulary
from gamma_kg.errors import DataError

# Properties whose literals name a thing, the most telling first; schema.org is written with http and https.
LABEL_PROPERTIES = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
    "http://purl.org/dc/elements/1.1/title",
)
# Further names: never shown, always understood.
ALTERNATIVE_PROPERTIES = frozenset(
    (
        "http://www.w3.org/2004/02/skos/core#altLabel",
        "http://www.w3.org/2004/02/skos/core#hiddenLabel",
        "http://schema.org/alternateName",
        "https://schema.org/alternateName",
        "http://xmlns.com/foaf/0.1/nick",
        "http://purl.org/dc/terms/alternative",
        "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym",
        "http://www.geneontology.org/formats/oboInOwl#id",
        "http://purl.obolibrary.org/obo/IAO_0000118",
    )
)
WELL_KNOWN_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "dbr": "http://dbpedia.org/resource/",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "geonames": "http://www.geonames.org/ontology#",
    "obo": "http://purl.obolibrary.org/obo/",
}
# An identifier that people can read: letters, at least three, and what joins words.
WORDS = re.compile(r"[^\W\d_](?:[_-]?[^\W\d_]){2,}")
# A namespace without a prefix gets one if at least so many names use it.
MIN_NAMES_FOR_PREFIX = 2


def full_iri(name: str) -> str:
    """The IRI meant by `skos:prefLabel`, <http://…> or http://…; only well-known prefixes are understood."""
    name = name.strip().removeprefix("<").removesuffix(">")
    prefix, colon, rest = name.partition(":")
    if prefix in WELL_KNOWN_PREFIXES and not rest.startswith("//"):
        return WELL_KNOWN_PREFIXES[prefix] + rest
    if not colon or not (rest.startswith("//") or prefix in ("urn", "tag")):
        raise DataError(
            f"a property is an IRI or has a well-known prefix ({', '.join(sorted(WELL_KNOWN_PREFIXES))}), got {name!r}"
        )
    return name


class RdfNames:
    """Collects prefixes and labels while RDF is read, then names the ids.

    `properties` are label properties that come before the usual ones. Then a label in one of the `languages`, best
    first, comes before one without a language, and that before any other; among these the property decides. A label in
    a language that nobody asked for gives way to an identifier made of words: `NamedPizza`, not "PizzaComUmNome"@pt.
    """

    def __init__(self, properties: Sequence[str] = (), languages: Sequence[str] = ("en",)) -> None:
        self.prefixes: dict[str, str] = {}
        wanted = [*map(full_iri, properties), *LABEL_PROPERTIES]
        self._property_ranks = {iri: -rank for rank, iri in reversed(list(enumerate(wanted)))}
        self._wanted = set(wanted[: len(properties)])
        self._language_ranks = {
            language.lower(): len(languages) + 1 - rank for rank, language in reversed(list(enumerate(languages)))
        }
        self._labels: dict[str, tuple[tuple[bool, int, int], str]] = {}
        self._alternatives: dict[str, list[str]] = {}

    @property
    def properties(self) -> list[str]:
        """All properties whose literals are names."""
        return [*self._property_ranks, *sorted(ALTERNATIVE_PROPERTIES - self._property_ranks.keys())]

    def is_name(self, property_: str) -> bool:
        """Whether literals of this property name their subject."""
        return property_ in self._property_ranks or property_ in ALTERNATIVE_PROPERTIES

    def add_label(self, iri: str, property_: str, text: str, language: str | None) -> None:
        """Keeps the best label to show, and every other one to be understood."""
        text = " ".join(text.split())
        if not text:
            return
        if property_ not in self._property_ranks:
            self._alternatives.setdefault(iri, []).append(text)
            return
        worth = (property_ in self._wanted, self._language_rank(language), self._property_ranks[property_])
        best = self._labels.get(iri)
        if best is None or worth > best[0]:
            self._labels[iri] = (worth, text)
        loser = text if best is not None and worth <= best[0] else None if best is None else best[1]
        if loser is not None and loser != self._labels[iri][1]:
            self._alternatives.setdefault(iri, []).append(loser)

    def _language_rank(self, language: str | None) -> int:
        if language is None:
            return self._language_ranks.get("", 1)
        whole = language.lower()
        return self._language_ranks.get(whole, self._language_ranks.get(whole.split("-")[0], 0))

    def vocabularies(self, encoder: TripleEncoder) -> tuple[Vocabulary, Vocabulary]:
        """Entities and relations under the names that people see; IRIs and prefixed names are understood too."""
        namespaces = self._namespaces([encoder.entity_ids, encoder.relation_ids])
        return (
            self._vocabulary(encoder.entity_ids, namespaces, "entity"),
            self._vocabulary(encoder.relation_ids, namespaces, "relation"),
        )

    def _vocabulary(self, ids: dict[str, int], namespaces: dict[str, str], kind: str) -> Vocabulary:
        identifiers = list(ids)
        prefixed = [prefixed_name(iri, namespaces) for iri in identifiers]
        labels = [self._labels[iri][1] if iri in self._labels else "" for iri in identifiers]
        best = ["" if self._is_foreign(iri) else label for iri, label in zip(identifiers, labels, strict=True)]
        best = _with_bare_names(best, prefixed)
        seen = Counter(label or name for label, name in zip(best, prefixed, strict=True))
        shown = [
            name if not label else label if seen[label] == 1 else f"{label} ({name})"
            for label, name in zip(best, prefixed, strict=True)
        ]
        if len(set(shown)) < len(shown):
            shown = identifiers
        # The bare word of a prefixed name is understood too, as long as it means one thing.
        words = [
            name.split(":", 1)[1] if ":" in name and name != iri else ""
            for name, iri in zip(prefixed, ids, strict=True)
        ]
        others = [(i, name) for i, iri in enumerate(identifiers) for name in self._alternatives.get(iri, ())]
        return Vocabulary(shown, kind, identifiers=identifiers, aliases=(prefixed, labels, words), alternatives=others)

    def _is_foreign(self, iri: str) -> bool:
        """Whether the best label is in no language that was asked for, and the identifier itself can be read."""
        best = self._labels.get(iri)
        if best is None:
            return False
        (is_wanted, language, _), _ = best
        return not is_wanted and language == 0 and WORDS.fullmatch(iri[len(namespace_of(iri)) :]) is not None

    def _namespaces(self, groups: Iterable[Iterable[str]]) -> dict[str, str]:
        """Namespace → prefix: those of the files, well-known ones, and invented ones for what is left."""
        found = {iri: prefix for prefix, iri in WELL_KNOWN_PREFIXES.items()}
        found.update({iri: prefix for prefix, iri in self.prefixes.items()})
        counts: Counter[str] = Counter()
        for names in groups:
            counts.update(namespace_of(name) for name in names)
        taken = set(found.values())
        for namespace, count in counts.most_common():
            if namespace and namespace not in found and count >= MIN_NAMES_FOR_PREFIX:
                prefix = invented_prefix(namespace, taken)
                taken.add(prefix)
                found[namespace] = prefix
        return found


def _with_bare_names(best: list[str], prefixed: list[str]) -> list[str]:
    """Labels, and for want of one a word in the file's own namespace (`:Kenya`) that nothing else is shown by."""
    words = [
        name[1:] if not label and name.startswith(":") and name[1:2].isalpha() else ""
        for label, name in zip(best, prefixed, strict=True)
    ]
    seen = Counter(word or label or name for word, label, name in zip(words, best, prefixed, strict=True))
    return [word if word and seen[word] == 1 else label for word, label in zip(words, best, strict=True)]


def namespace_of(iri: str) -> str:
    """The IRI up to its last # or /; empty for blank nodes and literals."""
    if "://" not in iri or iri.startswith(('"', "_:")):
        return ""
    cut = max(iri.rfind("#"), iri.rfind("/")) + 1
    return iri[:cut] if cut > iri.index("://") + 3 else ""


def prefixed_name(iri: str, namespaces: dict[str, str]) -> str:
    """'dbr:Kenya' for an IRI with a known namespace, else the IRI itself."""
    namespace = namespace_of(iri)
    prefix = namespaces.get(namespace)
    if prefix is None:
        # The files' own prefixes need not end at the last # or /.
        namespace = max((n for n in namespaces if iri.startswith(n)), key=len, default="") if namespace else ""
        prefix = namespaces.get(namespace)
    return iri if prefix is None or len(iri) == len(namespace) else f"{prefix}:{iri[len(namespace) :]}"


def invented_prefix(namespace: str, taken: set[str]) -> str:
    """A short word from the namespace: its last path part, else the host's name."""
    host, _, path = namespace.split("://", 1)[1].partition("/")
    labels = [part for part in host.split(".") if part != "www"]
    parts = [part for part in re.split(r"[/#]", path) if part]
    words = [*reversed(parts), labels[-2] if len(labels) > 1 else labels[0] if labels else "", "ns"]
    word = next(w for w in words if re.fullmatch(r"[A-Za-z][\w-]*", w))
    prefix, number = word, 2
    while prefix in taken:
        prefix, number = f"{word}{number}", number + 1
    return prefix
