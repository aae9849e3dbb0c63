"""XML lets a file define shorthands (entities) in terms of each other: a few lines can stand for terabytes.

RDF uses them for namespaces (&owl;). The parser expands whatever it is given, so what is longer than a namespace is
refused before it gets there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gamma_kg.errors import DataError

MAX_ENTITY_LENGTH = 1000
_MARK = b"<!ENTITY"
_DECLARATION = re.compile(rb"<!ENTITY\s+(%\s+)?([^\s\"'%]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_REFERENCE = re.compile(rb"[&%]([^;\s&%]+);")


def guarded(name: str, chunks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The chunks of an XML document, each looked through before it is handed on."""
    values: dict[bytes, bytes] = {}
    for line, chunk in chunks:
        if _MARK in chunk:
            found = list(_DECLARATION.finditer(chunk))
            if len(found) != chunk.count(_MARK):
                raise DataError(f"{name}: declares an XML entity that is not a plain text; only plain ones are read")
            values.update({match[2]: match[3] or match[4] or b"" for match in found})
            for entity in values:
                if _length(entity, values, set()) > MAX_ENTITY_LENGTH:
                    raise DataError(
                        f"{name}: the XML entity {entity[:40].decode('utf-8', 'replace')!r} stands for more than "
                        f"{MAX_ENTITY_LENGTH:,} characters; this is no namespace, and no such file is read"
                    )
        yield line, chunk


def _length(entity: bytes, values: dict[bytes, bytes], inside: set[bytes]) -> int:
    """How long an entity gets when all others in it are expanded; too long if it holds itself."""
    if entity in inside or len(inside) > 20:
        return MAX_ENTITY_LENGTH + 1
    value = values.get(entity, b"")
    total = len(value)
    for reference in _REFERENCE.findall(value):
        total += _length(reference, values, inside | {entity})
        if total > MAX_ENTITY_LENGTH:
            break
    return total
