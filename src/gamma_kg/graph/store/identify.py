"""From the names of all chunks to ids, with DuckDB, which sorts, groups and joins beyond memory by using the disk.

Polars was the other choice; its streaming engine keeps grouped and joined strings in memory. Ids follow the first
appearance, so a store and the same files read into memory number everything alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.graph.store.spool import disk_error

BATCH_ROWS = 1 << 20


def identify(spool: Path, kind: str, *, memory: int, threads: int) -> None:
    """Writes names.KIND.parquet (the names by id) and ids.KIND.parquet (the id of each chunk's local numbers)."""
    chunks = str(spool / f"chunk-*.{kind}.*.parquet").replace("'", "''")
    names, ids = (str(spool / f"{what}.{kind}.parquet").replace("'", "''") for what in ("names", "ids"))
    with _database(spool, memory, threads) as run:
        run(f"""COPY (SELECT name FROM read_parquet('{chunks}') GROUP BY name ORDER BY min(seen))
                TO '{names}' (FORMAT parquet, COMPRESSION lz4_raw)""")
        run(f"""COPY (SELECT id.file_row_number AS id FROM read_parquet('{chunks}') AS local
                      JOIN read_parquet('{names}', file_row_number = true) AS id ON local.name = id.name
                      ORDER BY local.chunk, local.local)
                TO '{ids}' (FORMAT parquet, COMPRESSION lz4_raw)""")


def batches(path: Path, column: str, size: int = BATCH_ROWS) -> Iterator[pl.Series]:
    """A column of a Parquet file, some rows at a time."""
    lazy = pl.scan_parquet(path).select(column)
    for start in range(0, count_rows(path), size):
        yield lazy.slice(start, size).collect()[column]


def count_rows(path: Path) -> int:
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def ids_of_chunk(spool: Path, kind: str, first: int, count: int) -> NDArray[np.int64]:
    """The ids of a chunk's local numbers; `first` counts the local numbers of the chunks before."""
    found = pl.scan_parquet(spool / f"ids.{kind}.parquet").slice(first, count).collect()["id"]
    return found.cast(pl.Int64).to_numpy()


def local_counts(spool: Path, kind: str, num_chunks: int) -> list[int]:
    """How many names each chunk has."""
    return [
        sum(count_rows(path) for path in spool.glob(f"chunk-{number}.{kind}.*.parquet")) for number in range(num_chunks)
    ]


@contextmanager
def _database(spool: Path, memory: int, threads: int) -> Iterator[Callable[[str], Any]]:
    """A DuckDB of its own for one step, with its limits; its errors become `DataError`."""
    try:
        import duckdb
    except ImportError:
        raise DataError("indexing needs DuckDB, which is not installed: pip install 'gamma-kg[index]'") from None
    temporary = str(spool / "duckdb").replace("'", "''")
    settings = {
        "memory_limit": f"'{max(memory >> 20, 256)}MiB'",
        "threads": str(threads),
        "temp_directory": f"'{temporary}'",
        "enable_progress_bar": "false",
    }
    try:
        with duckdb.connect() as connection:
            for name, value in settings.items():
                connection.execute(f"SET {name} = {value}")
            yield connection.execute
    except RuntimeError as error:
        # Ctrl-C while a query runs: DuckDB ends the query, and swallows the interrupt.
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from error
        raise
    except duckdb.OutOfMemoryException as error:
        raise DataError(
            f"not enough memory to put the names in order with {memory >> 20:,} MB for it; what was read is kept: run "
            "the same command with another --memory, or where there is more"
        ) from error
    except duckdb.Error as error:
        raise disk_error(spool, error, "can't put the names in order") from error
