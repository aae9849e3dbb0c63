"""Names and their ids, both ways. Names are kept in id order; the name → id index is built on first use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from gamma_kg.errors import DataError, UnknownNameError, did_you_mean

# Similar names are looked for by edit distance, which is slow: in a large vocabulary only among names
# that share the first characters or contain the one asked for.
SUGGEST_FROM = 20_000


class Vocabulary(Sequence[str]):
    """An immutable list of distinct names; `id(name)` is the position of a name.

    `kind` ("entity", "relation") only serves the error texts.
    """

    def __init__(self, names: Iterable[str], kind: str = "entity") -> None:
        self._names = list(names)
        self._kind = kind
        self._ids: dict[str, int] | None = None

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
        return name in self._index()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self._names == list(other)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self._kind} names)"

    def id(self, name: str) -> int:
        """The id of `name`; an unknown name raises `UnknownNameError`, which suggests the nearest ones."""
        found = self._index().get(name)
        if found is None:
            hint = did_you_mean(name, self._suggestable(name))
            raise UnknownNameError(f"no {self._kind} is named {name!r} among {len(self)}{hint}")
        return found

    def _index(self) -> dict[str, int]:
        if self._ids is None:
            ids = {name: i for i, name in enumerate(self._names)}
            if len(ids) != len(self._names):
                seen: set[str] = set()
                twice = next(n for n in self._names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
                raise DataError(f"{self._kind} names must differ, but {twice!r} is listed twice")
            self._ids = ids
        return self._ids

    def _suggestable(self, name: str) -> Iterable[str]:
        if len(self._names) <= SUGGEST_FROM:
            return self._names
        folded = name.casefold()
        return [n for n in self._names if n[:2].casefold() == folded[:2] or folded in n.casefold()][:SUGGEST_FROM]
