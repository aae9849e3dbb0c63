"""What people see instead of IRIs: labels where there are some, else prefixed names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.vocabulary import Vocabulary

LABEL_IRI = "http://www.w3.org/2000/01/rdf-schema#label"
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
# A namespace without a prefix gets one if at least so many names use it.
MIN_NAMES_FOR_PREFIX = 2


class RdfNames:
    """Collects prefixes and labels while RDF is read, then names the ids."""

    def __init__(self) -> None:
        self.prefixes: dict[str, str] = {}
        self._labels: dict[str, tuple[int, str]] = {}

    def add_label(self, iri: str, text: str, language: str | None) -> None:
        """Keeps the best label: English first, then one without a language, then the first one met."""
        worth = 2 if language is not None and language.lower().split("-")[0] == "en" else 1 if language is None else 0
        if text.strip() and worth > self._labels.get(iri, (-1, ""))[0]:
            self._labels[iri] = (worth, " ".join(text.split()))

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
        labels = [self._labels.get(iri, (0, ""))[1] for iri in identifiers]
        seen = Counter(label or name for label, name in zip(labels, prefixed, strict=True))
        shown = [
            name if not label else label if seen[label] == 1 else f"{label} ({name})"
            for label, name in zip(labels, prefixed, strict=True)
        ]
        if len(set(shown)) < len(shown):
            shown = identifiers
        # The bare word of a prefixed name is understood too, as long as it means one thing.
        words = [
            name.split(":", 1)[1] if ":" in name and name != iri else ""
            for name, iri in zip(prefixed, ids, strict=True)
        ]
        return Vocabulary(shown, kind, identifiers=identifiers, aliases=(prefixed, labels, words))

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
