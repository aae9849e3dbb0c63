"""Small JSON files that we write and read again ourselves: one that is damaged or was changed is seen, not believed.

`seal` adds a checksum to a record, `unsealed` takes it off again. `read_object` reads files that may be sealed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError, GammaError

CHECKSUM = "checksum"


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the checksum of what it says."""
    return {**record, CHECKSUM: _checksum(record)}


def unsealed(record: Any) -> dict[str, Any]:
    """What was sealed; a ValueError where it is something else by now."""
    told = {key: value for key, value in record.items() if key != CHECKSUM} if isinstance(record, dict) else {}
    if not told or record.get(CHECKSUM) != _checksum(told):
        raise ValueError("changed since it was written")
    return told


def read_object(
    path: Path, what: str, *, keys: Iterable[str] = (), error: type[GammaError] = DataError
) -> dict[str, Any]:
    """The JSON object in a file, with at least these keys; anything else is an error that says what was wanted.

    One with a checksum must be as it was written.
    """
    try:
        record = parsed(path.read_bytes())
        if isinstance(record, dict) and CHECKSUM in record:
            record = unsealed(record)
    except (OSError, ValueError) as found:
        raise error(f"{path} can't be read as {what}: {found}") from None
    missing = [key for key in keys if not isinstance(record, dict) or key not in record]
    if missing or not isinstance(record, dict):
        raise error(f"{path} is not {what}: {', '.join(missing) or 'a JSON object'} missing")
    return record


def parsed(content: str | bytes) -> Any:
    """JSON; whatever is wrong with it is a ValueError."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
