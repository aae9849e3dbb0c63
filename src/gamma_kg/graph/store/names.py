"""Names of a store: on disk, with an index for look-ups and an alphabetical order for search; no list in memory.

KIND.offset .bytes                  the names by id                     (KIND: entity or relation)
KIND.bucket_ptr .bucket_item        id of a name
KIND.order                          ids in alphabetical order
KIND.identifier.*                   what the data calls the same things, if that differs (RDF: full IRIs)
KIND.alias.* KIND.alias.owner       further names, and the id that each belongs to
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar, overload

import numpy as np

from gamma_kg.data.search import AlphabeticalOrder, alphabetical
from gamma_kg.data.vocabulary import Names, Vocabulary
from gamma_kg.graph.store.layout import ArrayFolder
from gamma_kg.graph.store.strings import BATCH_STRINGS, map_index, map_strings, write_index, write_strings

Item = TypeVar("Item")


class StoredNames(Names):
    """The names of one kind in a store."""

    def __init__(self, folder: ArrayFolder, kind: str, told: dict[str, Any]) -> None:
        self.kind, self.told = kind, told
        self._table = map_strings(folder, kind)
        self._index = map_index(folder, kind, self._table)
        order = folder.map(f"{kind}.order")
        self._order = AlphabeticalOrder(len(self._table), lambda place: self._table[int(order[place])])
        self._identifiers = self._identifier_index = self._aliases = None
        if told.get("identifiers"):
            self._identifiers = map_strings(folder, f"{kind}.identifier")
            self._identifier_index = map_index(folder, f"{kind}.identifier", self._identifiers)
        if told.get("aliases"):
            self._aliases = map_strings(folder, f"{kind}.alias")
            self._alias_index = map_index(folder, f"{kind}.alias", self._aliases)
            self._alias_owner = folder.map(f"{kind}.alias.owner")

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._table.slice(start, stop) if step == 1 else [self._table[i] for i in range(start, stop, step)]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"{self.kind} ids lie in 0..{len(self) - 1}, got {index}")
        return self._table[at]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._table.batches())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and len(self._meant(name)) == 1

    def __repr__(self) -> str:
        return f"StoredNames({len(self)} {self.kind} names)"

    @property
    def has_terms(self) -> bool:
        return self._identifiers is not None

    def id(self, name: str, *, exact: bool = False) -> int:
        found = self._meant(name) if isinstance(name, str) else []
        if not found and not exact and isinstance(name, str):
            found = [at for other in self._order.in_any_case(name) for at in self._index.find(other)[:1]]
        if len(found) > 1:
            raise self.ambiguous(name, [self[i] for i in found])
        if not found:
            raise self.unknown(name)
        return found[0]

    def identifier(self, index: int) -> str:
        return self[index] if self._identifiers is None else self._identifiers[index]

    def identifier_batches(self) -> Iterator[list[str]]:
        """What the data calls all of them, in order of their ids."""
        return (self._table if self._identifiers is None else self._identifiers).batches()

    def labels(self) -> Iterator[tuple[str, str]]:
        """(identifier, name people see) wherever that name is no short form of the identifier."""
        for identifiers, names in zip(self.identifier_batches(), self._table.batches(), strict=True):
            for identifier, name in zip(identifiers, names, strict=True):
                if ":" not in name:
                    yield identifier, name

    def search(self, prefix: str, limit: int = 10) -> list[str]:
        return self._order.starting_with(prefix, limit)

    def holding(self, part: str, limit: int = 10) -> list[str]:
        """The first names, by their ids, that hold this part anywhere."""
        return [self[i] for i in self._table.holding(part, limit)]

    def nearest(self, name: str, limit: int = 3) -> list[str]:
        return self._order.near(name, limit)

    def _meant(self, name: str) -> list[int]:
        """The ids that a name, an identifier or an alias stands for."""
        found = self._index.find(name)
        for written in (name, name[1:-1] if name.startswith("<") and name.endswith(">") else ""):
            if not found and written and self._identifier_index is not None:
                found = self._identifier_index.find(written)
            if not found and written and self._aliases is not None:
                found = sorted({int(self._alias_owner[at]) for at in self._alias_index.find(written)})
        return found


def write_names(folder: ArrayFolder, names: Iterable[Sequence[str]], kind: str) -> dict[str, Any]:
    """Writes names that come in batches, in order of their ids; returns what the header says of them."""
    table = write_strings(folder, kind, names)
    write_index(folder, kind, table)
    folder.write(f"{kind}.order", alphabetical(table.batches()).astype(np.int32))
    return {"identifiers": False, "aliases": False}


def write_vocabulary(folder: ArrayFolder, names: Names, kind: str) -> dict[str, Any]:
    """The same for a vocabulary, with its identifiers and aliases."""
    told = write_names(folder, _batches(names), kind)
    if names.has_terms:
        identifiers = ([names.identifier(i) for i in part] for part in _batches(range(len(names))))
        write_index(folder, f"{kind}.identifier", write_strings(folder, f"{kind}.identifier", identifiers))
    further = list(names.further_names()) if isinstance(names, Vocabulary) else []
    pairs = [(i, name) for i, name in further if name not in (names[i], names.identifier(i))]
    if pairs:
        write_index(folder, f"{kind}.alias", write_strings(folder, f"{kind}.alias", _batches([n for _, n in pairs])))
        folder.write(f"{kind}.alias.owner", np.array([i for i, _ in pairs], dtype=np.int32))
    return told | {"identifiers": names.has_terms, "aliases": bool(pairs)}


def _batches(names: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (names[start : start + BATCH_STRINGS] for start in range(0, len(names), BATCH_STRINGS))
