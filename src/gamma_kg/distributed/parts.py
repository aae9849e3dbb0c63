"""A result in parts: numbered blocks of work, one Parquet file each, each written whole or not at all.

A block's content depends on nothing but its number, so a block that is done twice, because a worker died after it,
leaves one file. Blocks whose file is there are not done again: that is how a run is taken up.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError
from gamma_kg.io.atomic import write_text, write_whole
from gamma_kg.io.lock import beside, locked
from gamma_kg.io.sealed import read_object, seal

RUN = "_run.json"  # readers of partitioned Parquet pass over names that begin so


class Parts:
    """The folder of a result in parts."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @contextmanager
    def writing(self, fingerprint: dict[str, Any]) -> Iterator[None]:
        """The folder for one run alone; parts of an earlier run must be of the same graph, model and options."""
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path}: a file is there; results in parts want the name of a folder")
        with locked(beside(self.path), f"the run that writes {self.path}"):
            told = json.loads(json.dumps(fingerprint))
            run = self.path / RUN
            if run.is_file():
                found = read_object(run, "the record of an earlier run; delete the folder to start anew")
                changed = [name for name in told if found.get(name) != told[name]]
                if changed:
                    raise DataError(
                        f"{self.path}: parts of an earlier run with another {changed[0]} are here; "
                        "repeat its options to go on, or delete the folder to start anew"
                    )
            elif self.path.is_dir() and any(self.path.iterdir()):
                raise DataError(f"{self.path}: a folder with other things in it; choose another name")
            else:
                write_text(run, json.dumps(seal(told)))
            yield

    def file(self, block: int) -> Path:
        return self.path / f"part-{block:07}.parquet"

    def missing(self, num_blocks: int) -> list[int]:
        """The blocks that are still to be done."""
        return [block for block in range(num_blocks) if not self.file(block).is_file()]

    def write(self, block: int, rows: dict[str, Sequence[Any]], types: dict[str, Any]) -> None:
        import polars as pl

        schema = {name: getattr(pl, kind) for name, kind in types.items()}
        write_whole(self.file(block), lambda file: pl.DataFrame(rows, schema=schema).write_parquet(file))

    def frames(self) -> Iterator[Any]:
        """The parts in order of their blocks, as polars data frames."""
        import polars as pl

        return (pl.read_parquet(file) for file in sorted(self.path.glob("part-*.parquet")))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
