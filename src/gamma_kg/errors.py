"""The errors a user can cause. Each text says what was wanted, what came, where, and what to do.

The command line prints them on one line and exits with 2; a library caller can catch `GammaError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GammaError(Exception):
    """Something a user can mend: bad input, a bad option, a file that is not what it should be."""


class DataError(GammaError):
    """A graph, a benchmark or a query that can't be read or does not fit."""


class EmptyFileError(DataError):
    """A file without a single row: a mistake where it is all there is, usual among the parts of a folder."""


class UnknownNameError(DataError, KeyError):
    """A name that is not in the vocabulary; the text suggests the nearest ones."""

    # KeyError shows its argument as a repr; the text is meant to be read.
    __str__ = Exception.__str__


class ConfigError(GammaError):
    """An option that does not exist or a value that is out of range."""


class CheckpointError(GammaError):
    """A checkpoint that is damaged, of another kind, or does not fit its config."""


class NonFiniteScoreError(GammaError):
    """Scores that are NaN or infinite: nothing can be ranked by them, least of all first."""


def nearest(name: str, candidates: Iterable[str], count: int = 3) -> list[str]:
    """The `count` candidates most like `name`, best first; case does not matter."""
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    found = difflib.get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.6)
    return [by_folded[key] for key in found]


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """'; did you mean 'x' or 'y'?' or '' when nothing is near: the tail of an error text."""
    close = nearest(name, candidates)
    return f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
