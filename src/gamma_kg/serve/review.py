"""What a person thinks of proposed facts: accepted or rejected, kept in order, with the latest word on each fact."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Literal

from gamma_kg.errors import DataError
from gamma_kg.io.atomic import write_text
from gamma_kg.io.lock import FileLock, beside
from gamma_kg.io.sealed import parsed

Triple = tuple[str, str, str]
Verdict = Literal["accepted", "rejected"]


class Review:
    """Verdicts on facts of one graph; with a file they outlive the server, which writes it whole at every change."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._verdicts: dict[Triple, tuple[Verdict, float | None]] = {}
        # Two servers would each write what the other does not know of. The lock ends with the process.
        self._held = None if path is None else FileLock(beside(path), f"the verdicts in {path}").acquire()
        if path is not None and path.exists():
            try:
                self._verdicts = _read(path)
            except BaseException:
                self.close()
                raise

    def decide(self, fact: Triple, verdict: Verdict | None, probability: float | None = None) -> None:
        """The latest word counts; None takes it back."""
        with self._lock:
            if verdict is None:
                self._verdicts.pop(fact, None)
            else:
                self._verdicts[fact] = (verdict, probability)
            if self._path is not None:
                write_text(self._path, "".join(_line(f, *v) for f, v in self._verdicts.items()))

    def verdict(self, fact: Triple) -> Verdict | None:
        found = self._verdicts.get(fact)
        return None if found is None else found[0]

    def facts(self, verdict: Verdict) -> list[tuple[Triple, float | None]]:
        """Facts with this verdict in the order in which they were decided, and their probability at that time."""
        with self._lock:
            return [(fact, p) for fact, (given, p) in self._verdicts.items() if given == verdict]

    def close(self) -> None:
        """Nothing more is decided here: another process may go on."""
        if self._held is not None:
            self._held.release()

    def __len__(self) -> int:
        return len(self._verdicts)


def _line(fact: Triple, verdict: Verdict, probability: float | None) -> str:
    head, relation, tail = fact
    row = {"head": head, "relation": relation, "tail": tail, "verdict": verdict, "probability": probability}
    return json.dumps(row) + "\n"


def _read(path: Path) -> dict[Triple, tuple[Verdict, float | None]]:
    found: dict[Triple, tuple[Verdict, float | None]] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = parsed(line)
            fact = (str(row["head"]), str(row["relation"]), str(row["tail"]))
            if row["verdict"] not in ("accepted", "rejected"):
                raise ValueError(row["verdict"])
            found[fact] = (row["verdict"], row.get("probability"))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} line {number}: expected a verdict that `gamma serve` wrote ({error})") from error
    return found
