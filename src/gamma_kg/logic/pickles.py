"""Query sets in the BetaE layout (a folder of .pkl files), read without executing anything in them.

A pickle is a program. This reader lets it build numbers, texts, lists, tuples, sets and dicts, and nothing else: any
other name that the file asks for ends the reading.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError

# Old protocols build sets by name; BetaE's answers lie in a dict that makes sets. These types run no code of the file.
ALLOWED: dict[tuple[str, str], type] = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "int"): int,
    ("__builtin__", "set"): set,
    ("__builtin__", "frozenset"): frozenset,
    ("collections", "defaultdict"): defaultdict,
}
PLAIN = (int, str)
MAX_DEPTH = 40


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise DataError(f"asks for {module}.{name}; only numbers, texts, tuples, sets and dicts are read")
        return ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise DataError("refers to objects outside the file")


def read_pickle(path: str | Path) -> Any:
    """What the file holds, as plain Python objects; anything else in it is refused."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}") from None
    try:
        found = _PlainUnpickler(io.BytesIO(content)).load()
        return _plain(found, 0)
    except DataError as error:
        raise DataError(f"{path} was not read: it {error}") from None
    except (RecursionError, MemoryError):
        raise DataError(f"{path} was not read: it is nested too deep or claims to be too large") from None
    except Exception as error:  # a damaged pickle fails in many ways, all of them mean the same
        raise DataError(f"{path} is damaged or no pickle of plain numbers ({type(error).__name__}: {error})") from None


def _plain(value: Any, depth: int) -> Any:
    """The same in fresh plain containers; a type object, a bool or a float is nothing that a query set holds."""
    if depth > MAX_DEPTH:
        raise DataError("is nested too deep")
    if type(value) in PLAIN:
        return value
    if isinstance(value, tuple):
        return tuple(_plain(part, depth + 1) for part in value)
    if isinstance(value, list):
        return [_plain(part, depth + 1) for part in value]
    if isinstance(value, set | frozenset):
        return {_plain(part, depth + 1) for part in value}
    if isinstance(value, dict):
        return {_plain(key, depth + 1): _plain(part, depth + 1) for key, part in value.items()}
    raise DataError(f"holds a {type(value).__name__}; only numbers, texts, tuples, sets and dicts are read")
