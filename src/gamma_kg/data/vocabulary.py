"""Names and their ids, both ways. Names are kept in id order; the name → id index is built on first use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import overload

from gamma_kg.data.search import AlphabeticalOrder, alphabetical, folded, in_batches
from gamma_kg.errors import DataError, UnknownNameError
from gamma_kg.errors import nearest as nearest_of

# Similar names are looked for by edit distance, which is slow: in a large vocabulary only among names
# that begin alike.
SUGGEST_FROM = 20_000


class Names(Sequence[str], ABC):
    """Distinct names by id, and ids by name, wherever they are kept."""

    kind: str

    @abstractmethod
    def id(self, name: str, *, exact: bool = False) -> int:
        """The id of `name`; an unknown name raises `UnknownNameError`, which suggests the nearest ones.

        Case is ignored where only one name fits, unless `exact`.
        """

    @abstractmethod
    def identifier(self, index: int) -> str:
        """What the data calls the thing with this id: the full IRI for RDF, the name itself otherwise."""

    @abstractmethod
    def identifier_batches(self) -> Iterator[Sequence[str]]:
        """The same for all ids in their order, some at a time."""

    @property
    def has_terms(self) -> bool:
        """Whether `identifier` gives RDF terms: IRIs, blank nodes (_:x) and literals ("x"@en), not plain names."""
        return False

    @abstractmethod
    def search(self, prefix: str, limit: int = 10) -> list[str]:
        """Names that start with `prefix`, in whatever case, in alphabetical order."""

    @abstractmethod
    def nearest(self, name: str, limit: int = 3) -> list[str]:
        """Names that look like this one, nearest first."""

    def unknown(self, name: object) -> UnknownNameError:
        """The error for a name that is not here."""
        found = self.nearest(name) if isinstance(name, str) else []
        hint = f"; did you mean {' or '.join(map(repr, found))}?" if found else ""
        if not found and self.kind == "relation":
            # There are few relations: the first ones show what a name looks like here.
            hint = f"; there are {', '.join(map(repr, self[:5]))}{' …' if len(self) > 5 else ''}"
        where = LISTED_BY.get(self.kind, "")
        return UnknownNameError(f"no {self.kind} is named {name!r} among {len(self)}{hint}{where}")

    def ambiguous(self, name: str, meant: Sequence[str]) -> UnknownNameError:
        """The error for an alias that several things share."""
        listed = " or ".join(map(repr, meant[:3]))
        return UnknownNameError(f"the name {name!r} means {len(meant)} {self.kind} names; use {listed}")


class Vocabulary(Names):
    """An immutable list of distinct names in memory; `id(name)` is the position of a name.

    `kind` ("entity", "relation") only serves the error texts. `identifiers` are the RDF terms by which the data
    calls the same things (full IRIs), one per name; `aliases` are further lists of names, one per id each, empty
    where there is none; `alternatives` are further (id, name) pairs. `id` understands them all, and another case where
    that means one thing; a name that means two things is an error.
    """

    def __init__(
        self,
        names: Iterable[str],
        kind: str = "entity",
        *,
        identifiers: Sequence[str] | None = None,
        aliases: Sequence[Sequence[str]] = (),
        alternatives: Sequence[tuple[int, str]] = (),
    ) -> None:
        self._names = list(names)
        self.kind = kind
        self._identifiers = identifiers
        self._alias_lists = [*([] if identifiers is None else [identifiers]), *aliases]
        self._alternatives = alternatives
        self._ids: dict[str, int] | None = None
        self._alias_ids: dict[str, int] | None = None
        self._folded_ids: dict[str, int] | None = None
        for others in self._alias_lists:
            if len(others) != len(self._names):
                raise ValueError(f"{len(self._names)} names, but {len(others)} identifiers or aliases")

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._names[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._index() or (isinstance(name, str) and self._aliased(name) >= 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self._names == list(other)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind} names)"

    @property
    def has_terms(self) -> bool:
        return self._identifiers is not None

    def id(self, name: str, *, exact: bool = False) -> int:
        found = self._index().get(name, UNKNOWN) if isinstance(name, str) else UNKNOWN
        if found == UNKNOWN and isinstance(name, str):
            found = self._aliased(name)
            if found == UNKNOWN and not exact:
                found = self._in_any_case(name)
        if found == AMBIGUOUS:
            raise self.ambiguous(name, [self._names[i] for i in self._bearers(name)])
        if found == UNKNOWN:
            raise self.unknown(name)
        return found

    def identifier(self, index: int) -> str:
        """What the data calls the thing with this id: the full IRI for RDF, the name itself otherwise."""
        return self._names[index] if self._identifiers is None else self._identifiers[index]

    def identifier_batches(self) -> Iterator[Sequence[str]]:
        yield self._names if self._identifiers is None else self._identifiers

    def further_names(self) -> Iterator[tuple[int, str]]:
        """Every other name that `id` understands, identifiers first: (id, name); a name may come more than once."""
        for others in self._alias_lists:
            yield from ((i, other) for i, other in enumerate(others) if other)
        yield from self._alternatives

    def check_distinct(self) -> None:
        """Raises `DataError` if a name is listed twice."""
        self._index()

    def _index(self) -> dict[str, int]:
        if self._ids is None:
            ids = {name: i for i, name in enumerate(self._names)}
            if len(ids) != len(self._names):
                seen: set[str] = set()
                twice = next(n for n in self._names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
                raise DataError(f"{self.kind} names must differ, but {twice!r} is listed twice")
            self._ids = ids
        return self._ids

    def _aliased(self, name: str) -> int:
        """The id behind an identifier or alias; negative if there is none (UNKNOWN) or more than one (AMBIGUOUS)."""
        if not self._alias_lists and not self._alternatives:
            return UNKNOWN
        if self._alias_ids is None:
            self._alias_ids = {}
            for i, other in self.further_names():
                if self._alias_ids.setdefault(other, i) != i:
                    self._alias_ids[other] = AMBIGUOUS
            # IRIs are never ambiguous, whatever labels say.
            self._alias_ids.update({other: i for i, other in enumerate(self._identifiers or ())})
        found = self._alias_ids.get(name, UNKNOWN)
        if found == UNKNOWN and name.startswith("<") and name.endswith(">"):
            found = self._alias_ids.get(name[1:-1], UNKNOWN)
        return found

    def _in_any_case(self, name: str) -> int:
        """The id of the one name that differs by case alone."""
        if self._folded_ids is None:
            self._folded_ids = {}
            for i, other in chain(enumerate(self._names), self.further_names()):
                if self._folded_ids.setdefault(folded(other), i) != i:
                    self._folded_ids[folded(other)] = AMBIGUOUS
        return self._folded_ids.get(folded(name), UNKNOWN)

    def _bearers(self, name: str) -> list[int]:
        exact = {i for i, other in chain(enumerate(self._names), self.further_names()) if other == name}
        if exact:
            return sorted(exact)
        wanted = folded(name)
        return sorted({i for i, o in chain(enumerate(self._names), self.further_names()) if folded(o) == wanted})

    def search(self, prefix: str, limit: int = 10) -> list[str]:
        return self._order.starting_with(prefix, limit)

    def nearest(self, name: str, limit: int = 3) -> list[str]:
        """Names that look alike, else names that contain the one asked for."""
        if len(self._names) > SUGGEST_FROM:
            return self._order.near(name, limit)
        close = nearest_of(name, self._names, limit)
        wanted = folded(name)
        return close or list(islice((n for n in self._names if wanted and wanted in folded(n)), limit))

    @cached_property
    def _order(self) -> AlphabeticalOrder:
        place = alphabetical(in_batches(self._names))
        return AlphabeticalOrder(len(self._names), lambda at: self._names[place[at]])


UNKNOWN = -1
AMBIGUOUS = -2
# The end of "no … is named", where a graph has more names than an error can list.
LISTED_BY = {
    "relation": " (`gamma describe GRAPH` lists them)",
    "entity": " (`gamma describe GRAPH --search WORD` finds names)",
}
