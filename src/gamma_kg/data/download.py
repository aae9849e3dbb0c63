"""Fetch a benchmark: download with resume, convert to the common layout, check, put in place whole or not at all."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gamma_kg.data.benchmark import RECORD, count_lines, file_sha256, read_hashes
from gamma_kg.data.catalog import Dataset, Download
from gamma_kg.errors import DataError
from gamma_kg.io.atomic import put_in_place, unfinished_name, write_text, write_whole
from gamma_kg.io.lock import beside, locked

TIMEOUT_SECONDS = 30.0
ATTEMPTS = 4
BLOCK = 1 << 18
# Downloads wait here until they are whole; a second fetch goes on where the first one stopped.
DOWNLOADS = ".downloads"

Listener = Callable[[str, int, int | None], None]
"""Hears (file name, bytes so far, bytes in all if the server says so)."""


class BadDownloadError(DataError):
    """What came is not the file that the catalogue describes."""


def fetch(entry: Dataset, folder: Path, listener: Listener | None = None, *, force: bool = False) -> list[str]:
    """Bring the files of a set into `folder`/slug. Returns the names of the files written; those at hand stay."""
    target = folder / entry.slug
    wanted = [name for name in entry.files if force or not (target / name).is_file()]
    try:
        with locked(beside(target), f"fetching {entry.slug}"):
            target.mkdir(parents=True, exist_ok=True)
            for name in wanted:
                _fetch_file(entry, name, folder, listener or (lambda name, done, total: None))
    except OSError as error:
        raise DataError(f"can't write to {target}: {error.strerror or error}") from None
    return wanted


def _fetch_file(entry: Dataset, name: str, folder: Path, listener: Listener) -> None:
    """One file of the layout: its downloads joined and converted under a temporary name, checked, then moved."""
    target = folder / entry.slug / name
    parts = [part for part in entry.downloads if part.file == name]
    fetched = [_download(entry, part, folder, listener) for part in parts]

    def convert(file: Path) -> None:
        with file.open("w", encoding="utf-8", newline="\n") as stream:
            for part, path in zip(parts, fetched, strict=True):
                stream.writelines(converted_lines(part, _lines(part, path)))
        _record(target.parent / RECORD, name, _check(entry, name, file))

    try:
        write_whole(target, convert)
    except BadDownloadError:
        # What came is not what it should be: the next attempt must not start from it.
        for path in fetched:
            path.unlink(missing_ok=True)
        raise
    for part, path in zip(parts, fetched, strict=True):
        # An archive serves several files and sets; it stays for the next one.
        if part.member is None:
            path.unlink(missing_ok=True)


def converted_lines(part: Download, lines: Iterable[str]) -> Iterator[str]:
    """Lines of a download as `head TAB relation TAB tail NEWLINE`; blank lines are dropped."""
    order = [part.columns.index(letter) for letter in "hrt"]
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if not text.strip():
            continue
        cells = text.split("\t") if part.split == "tab" else text.split()
        if len(cells) != 3:
            raise BadDownloadError(
                f"{part.urls[0]} line {number}: expected 3 columns, found {len(cells)}; its origin has changed"
            )
        yield "\t".join(cells[i] for i in order) + "\n"


def _lines(part: Download, path: Path) -> Iterator[str]:
    if part.member is None:
        with path.open(encoding="utf-8", newline="\n") as stream:
            yield from stream
        return
    try:
        with zipfile.ZipFile(path) as archive, archive.open(part.member) as member:
            for line in member:
                yield line.decode("utf-8")
    except (KeyError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError) as error:
        path.unlink(missing_ok=True)
        raise BadDownloadError(f"{part.urls[0]} is no archive with {part.member} in it: {error}") from None


def _check(entry: Dataset, name: str, path: Path) -> str:
    """The sha256 of a converted file, once it is what the catalogue says."""
    facts = entry.files[name]
    found, lines = file_sha256(path), count_lines(path)
    if facts.lines_at_origin is not None or facts.sha256 is None:
        expected = facts.lines_at_origin or facts.lines
        # Without a hash the paper's count is all there is to check against; it is a few lines off for some sets,
        # but a truncated file is not.
        if lines < 0.99 * expected:
            raise BadDownloadError(f"{entry.slug}/{name} was cut short: expected {expected} lines, found {lines}")
    elif found != facts.sha256:
        raise BadDownloadError(
            f"{entry.slug}/{name} was changed or cut short: expected sha256 {facts.sha256} ({facts.lines} lines), "
            f"found {found} ({lines} lines)"
        )
    return found


def _record(path: Path, name: str, sha256: str) -> None:
    """Remember the hash of what was written, so that later damage is seen."""
    recorded = read_hashes(path) if path.is_file() else {}
    write_text(path, json.dumps({**recorded, name: sha256}, indent=2) + "\n")


def _download(entry: Dataset, part: Download, folder: Path, listener: Listener) -> Path:
    """The file behind one of its addresses, whole; later addresses are tried when earlier ones fail."""
    complaints = []
    for url in part.urls:
        path = folder / DOWNLOADS / urllib.parse.quote(url.split("://", 1)[-1], safe="")
        if path.is_file():
            return path
        try:
            return _download_url(url, path, listener)
        except DataError as error:
            complaints.append(str(error))
    where = folder / entry.slug
    raise DataError(
        f"can't fetch {entry.slug}: {'; '.join(complaints)}. Without a network, put {', '.join(entry.files)} "
        f"(TAB between head, relation, tail) into {where}"
    )


def _download_url(url: str, path: Path, listener: Listener) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = unfinished_name(path)
    for _ in range(ATTEMPTS):
        try:
            if _continue(url, part, listener, path.name):
                put_in_place(part, path)
                return path
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise DataError(f"{url} answered {error.code} {error.reason}") from None
            complaint = f"{error.code} {error.reason}"
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            complaint = str(getattr(error, "reason", error))
            if isinstance(error, urllib.error.URLError) and not part.is_file():
                raise DataError(f"{url} can't be reached ({complaint})") from None
        else:
            complaint = "the connection ended early"
    raise DataError(f"{url}: {complaint}, {ATTEMPTS} attempts; run the command again to go on where it stopped")


def _continue(url: str, part: Path, listener: Listener, name: str) -> bool:
    """Append what is missing to `part`; True when it is whole by the length the server stated."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "gamma-kg"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # Nothing lies beyond what we have, or it is not of this file: start over, the hash decides in the end.
        part.unlink(missing_ok=True)
        return False
    with response, part.open("ab" if response.status == 206 else "wb") as stream:
        start = have if response.status == 206 else 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None else None
        done = start
        while block := response.read(BLOCK):
            stream.write(block)
            done += len(block)
            listener(name, done, total)
    return total is None or done == total
