"""A real Ray of two workers, one of which is killed while it works."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gamma_kg import Gamma, GammaBatch, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.predicting.query_files import answers_in_order

pytest.importorskip("ray", reason="Ray is an extra: pip install 'gamma-kg[ray]'")


@pytest.fixture
def one_ray() -> Iterator[None]:
    """A Ray that runs already is used and goes on: starting one for each run took most of the time."""
    import ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as `distributed/on_ray.py` does
        ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    yield
    assert ray.is_initialized(), "a Ray that was there already was ended"
    ray.shutdown()


@pytest.mark.usefixtures("one_ray")
def test_a_killed_worker_changes_nothing(tmp_path: Path, family: KnowledgeGraph, small_gamma: Gamma) -> None:
    from gamma_kg.distributed.on_ray import complete_on_ray, predict_on_ray

    class Mortal(GammaBatch):
        """Dies once, over the first block that holds the query of Eve."""

        def __call__(self, batch: Any) -> Any:
            mark = Path(self.graph).with_name("died")
            if "Eve" in set(batch["head"]) and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    family.save(tmp_path / "family.gamma")
    small_gamma.save(tmp_path / "small.safetensors")
    kg = KnowledgeGraph.open(tmp_path / "family.gamma")
    queries = [(name, relation, None) for name in kg.entities for relation in kg.relations]
    batch = Mortal(tmp_path / "family.gamma", tmp_path / "small.safetensors", top_k=3, memory="200MB")
    parts = predict_on_ray(batch, queries, tmp_path / "answers", workers=2, block_queries=5)
    assert (tmp_path / "died").exists(), "nobody was killed"
    found = pl.concat(parts.frames())
    asked = [("", query) for query in queries]
    expected = list(answers_in_order(small_gamma, kg, asked, top_k=3, memory="200MB"))
    assert found.drop("query").to_dicts() == expected
    assert found["query"].n_unique() == len({(row["head"], row["relation"]) for row in expected})

    done = parts.file(2).read_bytes()
    parts.file(1).unlink()
    told: list[tuple[int, int]] = []
    predict_on_ray(batch, queries, parts.path, workers=2, block_queries=5, progress=lambda *at: told.append(at))
    assert told == [(35, 40), (40, 40)], "only what is missing is done again"
    assert pl.concat(parts.frames()).equals(found) and parts.file(2).read_bytes() == done

    together = complete_on_ray(batch, tmp_path / "facts", workers=2, block_queries=4, top=1000, min_cases=0)
    alone = complete(small_gamma, kg, top=1000, min_cases=0, memory="200MB")
    assert together.facts == alone.facts and len(alone.facts) > 0


def test_a_ray_that_does_not_start_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    from gamma_kg import DataError
    from gamma_kg.distributed.on_ray import _connected

    def too_busy(**how: object) -> None:
        raise Exception("The current node timed out during startup.\nmore")

    monkeypatch.setattr(ray, "init", too_busy)
    with pytest.raises(DataError, match=r"did not start: .*during startup\.; try again"), _connected("local", 2):
        pass
