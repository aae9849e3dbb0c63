"""Files and folders that appear whole or not at all: made under another name on the same disk, then renamed.

A write that fails (a full disk, a folder that is read-only) leaves what was there untouched and is one `GammaError`.
A process that was killed while it wrote leaves the temporary file; the next write into that folder clears it away.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError, GammaError

FULL = (errno.ENOSPC, errno.EDQUOT)


def temporary_name(path: Path) -> Path:
    """Where a file is written before it gets its name: hidden, beside it, and of this process alone."""
    return path.with_name(f".{path.name}.{_host()}.{os.getpid()}.tmp")


def unfinished_name(path: Path) -> Path:
    """Where a file waits that a later process goes on with: it stays when this one dies, and any process finds it."""
    return path.with_name(path.name + ".part")


def put_in_place(made: Path, path: Path, *, error: type[GammaError] = DataError) -> None:
    """Gives a file or a folder that is whole its name, in one step; what had the name before is gone."""
    try:
        if made.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # no system puts a folder in the place of one with files in it
        os.replace(made, path)
    except OSError as found:
        raise cannot_write(path, found, error) from found


def clear_leftovers(folder: Path) -> None:
    """Deletes temporary files of processes of this machine that are no more; others may still be written to."""
    pattern = re.compile(rf"\..+\.{re.escape(_host())}\.(\d+)\.tmp")
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found is not None and not _is_alive(int(found[1])):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


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
            clear_leftovers(path.parent)
            temporary.touch()
            mode = temporary.stat().st_mode
            write(temporary)
            # Some writers make the file anew for its owner alone; it gets the rights that any new file has here.
            temporary.chmod(mode)
            if sync:
                _sync(temporary)
            put_in_place(temporary, path, error=error)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as found:
        raise cannot_write(path, found, error) from found
    except GammaError:
        raise
    except Exception as found:
        # Libraries in Rust (polars, safetensors) wrap what the system said in errors of their own.
        told = re.search(r"\(os error (\d+)\)", str(found))
        if told is None:
            raise
        raise cannot_write(path, OSError(int(told[1]), os.strerror(int(told[1]))), error) from found


def write_text(path: str | Path, text: str, *, error: type[GammaError] = DataError, sync: bool = False) -> None:
    """Write text as UTF-8, whole or not at all; line ends stay as they are."""
    write_whole(path, lambda file: file.write_bytes(text.encode("utf-8")), error=error, sync=sync)


def cannot_write(path: Path, found: OSError, error: type[GammaError] = DataError) -> GammaError:
    """The one sentence for a file that can't be written."""
    what_to_do = "; make room there or write elsewhere, and run it again" if found.errno in FULL else ""
    # Both come of making the folders on the way, where one of them is a file.
    is_file = found.errno in (errno.EEXIST, errno.ENOTDIR)
    reason = "a file is there where a folder is wanted" if is_file else found.strerror or found
    return error(f"can't write {str(path)[:200]}: {reason}{what_to_do}")


def _host() -> str:
    """The machine's name, for folders that several machines share: a process number means nothing elsewhere."""
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname()) or "host"


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":  # signal 0 would end the process there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
