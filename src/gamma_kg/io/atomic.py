"""Files that appear whole or not at all: written under another name in the same folder, then renamed.

A write that fails (a full disk, a folder that is read-only) leaves what was there untouched and is one `GammaError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError, GammaError


def temporary_name(path: Path) -> Path:
    """Where a file is written before it gets its name: hidden, beside it, and of this process alone."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def write_whole(
    path: str | Path, write: Callable[[Path], Any], *, error: type[GammaError] = DataError, sync: bool = False
) -> None:
    """Let `write` fill a temporary file, then give it its name; folders are made as needed.

    With `sync` the contents are on the disk before the name is: for what must survive a loss of power.
    """
    path = Path(path)
    temporary = temporary_name(path)
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch()
            mode = temporary.stat().st_mode
            write(temporary)
            # Some writers make the file anew for its owner alone; it gets the rights that any new file has here.
            temporary.chmod(mode)
            if sync:
                _sync(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as found:
        raise cannot_write(path, found, error) from found
    except RuntimeError as found:
        # torch.save tells of a full disk in its own way.
        if "write" not in str(found).lower():
            raise
        raise error(f"can't write {path}: {str(found).splitlines()[0]}") from found


def write_text(path: str | Path, text: str, *, error: type[GammaError] = DataError, sync: bool = False) -> None:
    """Write text as UTF-8, whole or not at all; line ends stay as they are."""
    write_whole(path, lambda file: file.write_bytes(text.encode("utf-8")), error=error, sync=sync)


def cannot_write(path: Path, found: OSError, error: type[GammaError] = DataError) -> GammaError:
    """The one sentence for a file that can't be written."""
    return error(f"can't write {path}: {found.strerror or found}")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
