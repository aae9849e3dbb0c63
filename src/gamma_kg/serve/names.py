"""Finding names as they are typed: whole, from the start, from the start of a word, anywhere, or misspelt.

Case and accents don't count. All names lie in one long string, so that a search is one scan by the C library.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.vocabulary import Names
from gamma_kg.graph.store.names import StoredNames

END = "\n"
SMALL = 200_000  # names up to which all are kept in one string
# Of more matches than this the best connected are not looked for.
LOOKED_AT = 2000
FUZZY_FROM = 3  # characters
FEW = 3  # names that fit as typed, from which on nothing misspelt is looked for
FUZZY_LEAST = 0.6
LONGEST_SLIP = 40
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 -_.:/"


def fold(name: str) -> str:
    """Lower case, without accents and line ends."""
    if not name.isascii():
        name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return name.casefold().replace(END, " ")


class LargeNameSearch:
    """The same for names by the million, or on disk: from the start, one slip of the pen away, alike, or anywhere."""

    def __init__(self, names: Names, first: Sequence[int] = ()) -> None:
        """`first` are those to name before anything is typed."""
        self._names, self._first = names, first

    def find(self, text: str, limit: int) -> list[int]:
        wanted = text.strip()
        if not wanted and self._first:
            return list(self._first[:limit])
        found = dict.fromkeys([wanted] if wanted and wanted in self._names else [])
        found.update(dict.fromkeys(self._names.search(wanted, limit)))
        for more, least in ((self._slips, FEW), (self._names.nearest, FEW), (self._holding, limit)):
            if len(wanted) >= FUZZY_FROM and len(found) < least:
                found.update(dict.fromkeys(more(wanted, limit)))
        return [self._names.id(name) for name in found][:limit]

    def _slips(self, wanted: str, limit: int) -> list[str]:
        """Names that are one letter away, each looked up by its hash: the number of names does not matter."""
        if len(wanted) > LONGEST_SLIP:
            return []
        return list(islice((name for name in one_slip_away(wanted) if name in self._names), limit))

    def _holding(self, wanted: str, limit: int) -> list[str]:
        return self._names.holding(wanted, limit) if isinstance(self._names, StoredNames) else []


def one_slip_away(text: str) -> Iterator[str]:
    """What one meant who typed a letter too many, two in the wrong order, a wrong one, or left one out."""
    for start in dict.fromkeys((text, text[:1].swapcase() + text[1:])):
        yield start
        cuts = [(start[:i], start[i:]) for i in range(len(start) + 1)]
        yield from (left + right[1:] for left, right in cuts if right)
        yield from (left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1)
        yield from (left + letter + right[1:] for left, right in cuts if right for letter in LETTERS)
        yield from (left + letter + right for left, right in cuts for letter in LETTERS)


class NameSearch:
    """Ids of names that match a text, best first; among equals those with the larger `weight`."""

    def __init__(self, names: Sequence[str], weight: NDArray[np.int64]) -> None:
        folded = [fold(name) for name in names]
        self._text = END + END.join(folded) + END
        lengths = np.fromiter((len(name) + 1 for name in folded), dtype=np.int64, count=len(folded))
        self._start = np.cumsum(lengths) - lengths + 1
        self._weight = weight
        self._folded = folded

    def find(self, text: str, limit: int) -> list[int]:
        """At most `limit` ids; all names by weight for an empty text."""
        wanted = fold(text.strip())
        if not len(self._folded):
            return []
        if not wanted:
            best = np.argsort(-self._weight, kind="stable")[:limit]
            return [int(i) for i in best]
        found: dict[int, None] = {}
        for pattern in (END + wanted + END, END + wanted, " " + wanted, wanted):
            if len(found) < limit:
                found.update(dict.fromkeys(self._by_weight(self._holding(pattern))))
        if len(found) < min(limit, FEW) and len(wanted) >= FUZZY_FROM:
            found.update(dict.fromkeys(self._alike(wanted)))
        return list(found)[:limit]

    def _holding(self, pattern: str) -> set[int]:
        """Ids of the first names in which the pattern stands."""
        shift = 1 if pattern[0] == END else 0
        return {self._owner(at + shift) for at in self._places(pattern)}

    def _places(self, pattern: str) -> Iterator[int]:
        at = self._text.find(pattern)
        for _ in range(LOOKED_AT):
            if at < 0:
                return
            yield at
            at = self._text.find(pattern, at + 1)

    def _owner(self, place: int) -> int:
        return int(np.searchsorted(self._start, place, side="right")) - 1

    def _by_weight(self, ids: set[int]) -> list[int]:
        return sorted(ids, key=lambda i: (-int(self._weight[i]), len(self._folded[i]), i))

    def _alike(self, wanted: str) -> list[int]:
        """Misspelt names: those that share the most groups of three characters, by edit similarity."""
        shared: Counter[int] = Counter()
        for piece in {wanted[i : i + 3] for i in range(len(wanted) - 2)} | {END + wanted[:2]}:
            shared.update(self._holding(piece))
        matcher = difflib.SequenceMatcher(b=wanted)
        scored = []
        for i, _ in shared.most_common(100):
            matcher.set_seq1(self._folded[i])
            if (ratio := matcher.ratio()) >= FUZZY_LEAST:
                scored.append((-ratio, i))
        return [i for _, i in sorted(scored)]
