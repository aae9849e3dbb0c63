"""Batch jobs on Ray: blocks of work over a pool of actors, each of which opens the graph once.

Ray Data hands out the blocks and gives those of a dead actor to another one. On several machines the store and the
folder of results lie where all of them see it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from gamma_kg.complete.choice import Choice
from gamma_kg.complete.proposals import Completion, Finder, listed, promising_queries
from gamma_kg.data.columns import ROLES
from gamma_kg.distributed.batch import GammaBatch
from gamma_kg.distributed.parts import Parts
from gamma_kg.errors import DataError
from gamma_kg.predicting.fingerprint import run_fingerprint
from gamma_kg.predicting.prediction import Query

LOCAL = "local"
BLOCK_QUERIES = 256
Progress = Callable[[int, int], None]
ANSWER_TYPES = {
    "query": "Int64", "head": "String", "relation": "String", "tail": "String", "asked": "String", "rank": "Int64",
    "probability": "Float64", "score": "Float64", "known": "Boolean", "local": "Int64", "is_sampled": "Boolean",
}  # fmt: skip
FACT_TYPES = {"head": "Int64", "relation": "Int64", "tail": "Int64", "probability": "Float64", "score": "Float64"}


def predict_on_ray(
    batch: GammaBatch,
    queries: Sequence[Query],
    out: str | Path,
    *,
    address: str = LOCAL,
    workers: int | None = None,
    block_queries: int = BLOCK_QUERIES,
    progress: Progress | None = None,
) -> Parts:
    """Answers queries into a folder of Parquet parts, every query once; `query` is its place in the list.

    The same call goes on where an earlier one ended.
    """
    parts = Parts(out)
    asked = [list(query) for query in queries]
    told = {
        "queries": hashlib.sha256(json.dumps(asked).encode()).hexdigest(),
        "block_queries": block_queries,
        "top_k": batch.how.top_k,
        "include_known": batch.how.include_known,
    }
    with parts.writing(run_fingerprint(batch.predictor, batch.kg, batch.how, **told)):
        blocks = {
            number: asked[number * block_queries : (number + 1) * block_queries]
            for number in parts.missing(-(-len(asked) // block_queries))
        }
        _run(_Predicting, (batch, str(parts.path), block_queries), blocks, address, workers, progress, len(asked))
    return parts


def complete_on_ray(
    batch: GammaBatch,
    out: str | Path,
    *,
    address: str = LOCAL,
    workers: int | None = None,
    block_queries: int = BLOCK_QUERIES,
    progress: Progress | None = None,
    **wanted: Any,
) -> Completion:
    """The facts that `complete` finds; what is `wanted` as there, from `relations` to `min_cases`.

    Blocks that are done lie in the folder `out` until the caller removes it.
    """
    started = time.monotonic()
    parts, kg = Parts(out), batch.kg
    choice = Choice.of(kg, **wanted)
    queries = promising_queries(kg, choice, rules=batch.how.rules)
    told = {**choice.record(), "block_queries": block_queries}
    with parts.writing(run_fingerprint(batch.predictor, kg, batch.how, **told)):
        blocks = {
            number: queries[number * block_queries : (number + 1) * block_queries].tolist()
            for number in parts.missing(-(-len(queries) // block_queries))
        }
        _run(_Completing, (batch, str(parts.path), choice), blocks, address, workers, progress, len(queries))
        # A fact may be found from both ends, in two blocks; it counts where one process would have found it first.
        facts: dict[tuple[int, int, int], tuple[float, float]] = {}
        for frame in parts.frames():
            for head, relation, tail, probability, score in frame.iter_rows():
                facts.setdefault((head, relation, tail), (probability, score))
    found = listed(kg, choice, [(*fact, *rest) for fact, rest in facts.items()], rules=batch.how.rules)
    return Completion(found, len(queries), len(queries), time.monotonic() - started)


class _Predicting:
    """An actor that answers blocks of queries."""

    def __init__(self, batch: GammaBatch, out: str, block_queries: int) -> None:
        self._batch, self._parts, self._size = batch, Parts(out), block_queries

    def __call__(self, block: dict[str, Any]) -> dict[str, Any]:
        import pandas as pd

        number, queries = _unpacked(block)
        frame = pd.DataFrame(queries, columns=list(ROLES), dtype=object)
        frame["query"] = range(number * self._size, number * self._size + len(frame))
        answers = self._batch(frame)
        self._parts.write(number, {name: answers[name].tolist() for name in ANSWER_TYPES}, ANSWER_TYPES)
        return {"queries": [len(queries)]}


class _Completing:
    """An actor that finds the facts of blocks of queries."""

    def __init__(self, batch: GammaBatch, out: str, choice: Choice) -> None:
        self._parts, self._choice = Parts(out), choice
        self._finder = Finder(batch.predictor, batch.kg, batch.how, choice.min_cases)

    def __call__(self, block: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        number, queries = _unpacked(block)
        self._finder.seen.clear()  # a block gives the same facts whichever blocks came before it
        facts = self._finder.facts(np.array(queries, dtype=np.int64).reshape(-1, 2))
        rows = [fact for fact in facts if fact[3] >= self._choice.bound(fact[1])]
        columns = list(zip(*rows, strict=True)) or [()] * len(FACT_TYPES)
        self._parts.write(number, dict(zip(FACT_TYPES, columns, strict=True)), FACT_TYPES)
        return {"queries": [len(queries)]}


def _unpacked(block: dict[str, Any]) -> tuple[int, list[list[Any]]]:
    return int(block["block"][0]), json.loads(str(block["queries"][0]))


def _run(
    actor: type,
    arguments: tuple[Any, ...],
    blocks: dict[int, list[list[Any]]],
    address: str,
    workers: int | None,
    progress: Progress | None,
    total: int,
) -> None:
    """Puts the blocks through a pool of actors; returns when all are done."""
    done = total - sum(map(len, blocks.values()))
    if progress is not None:
        progress(done, total)
    if not blocks:
        return
    with _connected(address, workers) as (data, num_workers):
        items = [{"block": number, "queries": json.dumps(queries)} for number, queries in blocks.items()]
        dataset = data.from_items(items, override_num_blocks=len(items))
        results = dataset.map_batches(
            actor,
            fn_constructor_args=arguments,
            batch_size=1,
            batch_format="numpy",
            num_cpus=1,
            concurrency=min(num_workers, len(items)),
        )
        for row in results.iter_rows():
            done += int(row["queries"])
            if progress is not None:
                progress(done, total)


@contextmanager
def _connected(address: str, workers: int | None) -> Iterator[tuple[Any, int]]:
    """Ray Data, and how many actors to use. A local Ray is ended again; one that runs already goes on."""
    with warnings.catch_warnings():
        # Ray's own parts use each other in ways that it warns of; nobody here can mend that.
        warnings.simplefilter("ignore")
        yield from _ray_data(address, workers)


def _ray_data(address: str, workers: int | None) -> Iterator[tuple[Any, int]]:
    try:
        ray: Any = import_module("ray")
        import_module("ray.data")
    except ImportError:
        raise DataError("--ray needs Ray, which is not installed: pip install 'gamma-kg[ray]'") from None
    was_there = ray.is_initialized()
    num_local = workers or os.cpu_count() or 1
    try:
        if not was_there:
            where: dict[str, Any] = {"num_cpus": num_local} if address == LOCAL else {"address": address}
            _start(ray, include_dashboard=None if address != LOCAL else False, logging_level=logging.ERROR, **where)
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray.data, workers or int(ray.cluster_resources().get("CPU", num_local))
    except ConnectionError as error:
        raise DataError(f"no Ray answers at {address} ({error}); start one with `ray start --head`") from None
    finally:
        if not was_there:
            ray.shutdown()


def _start(ray: Any, **how: Any) -> None:
    try:
        ray.init(**how)
    except ConnectionError:
        raise
    except Exception as error:  # a machine that is too busy is told in an exception without a kind of its own
        raise DataError(f"Ray did not start: {str(error).splitlines()[0]}; try again, or without --ray") from error
