from __future__ import annotations

import pickle
from pathlib import Path

import pandas as pd
import pytest

from gamma_kg import Gamma, GammaBatch, KnowledgeGraph
from gamma_kg.distributed.parts import Parts
from gamma_kg.errors import DataError


@pytest.fixture
def batch(tmp_path: Path, family: KnowledgeGraph, small_gamma: Gamma) -> GammaBatch:
    family.save(tmp_path / "family.gamma")
    small_gamma.save(tmp_path / "small.safetensors")
    return GammaBatch(tmp_path / "family.gamma", tmp_path / "small.safetensors", top_k=2)


QUERIES = pd.DataFrame(
    {
        "head": ["Ann", None, "Dan"],
        "relation": ["mother of", "lives in", "father of"],
        "tail": ["?", "Nairobi", None],
        "mark": [7, 8, 9],
    }
)


def test_frames_iterators_and_columns_give_the_same_answers(
    batch: GammaBatch, family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    whole = batch(QUERIES)
    expected = small_gamma.predict(family, head="Dan", relation="father of", top_k=2)
    assert whole[whole["mark"] == 9]["tail"].tolist() == [p.name for p in expected]
    assert whole[whole["mark"] == 9]["score"].tolist() == [p.score for p in expected]
    in_parts = pd.concat(list(batch(iter([QUERIES[:2], QUERIES[2:]]))), ignore_index=True)
    for answers in (in_parts, batch({name: QUERIES[name].to_numpy() for name in QUERIES})):
        pd.testing.assert_frame_equal(answers.drop(columns="question"), whole.drop(columns="question"))


def test_frames_say_what_answers_were_computed_on_and_have_the_columns_that_spark_is_told(
    tmp_path: Path, family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    family.save(tmp_path / "family.gamma")
    small_gamma.save(tmp_path / "small.safetensors")
    for local, expected in (("off", None), (5, 5)):
        answers = GammaBatch(tmp_path / "family.gamma", tmp_path / "small.safetensors", local=local)(QUERIES[:1])
        assert answers["local"].tolist() == [expected] * len(answers)
        assert not answers["is_sampled"].any()
        told = [column.split()[0] for column in GammaBatch.SPARK_SCHEMA.split(", ")]
        assert sorted(told) == sorted(answers.drop(columns="mark").columns)


def test_a_batch_that_was_used_can_be_sent_to_another_process(batch: GammaBatch) -> None:
    whole = batch(QUERIES)
    sent = pickle.dumps(batch)
    assert len(sent) < 2_000, "names travel, graphs and weights do not"
    pd.testing.assert_frame_equal(pickle.loads(sent)(QUERIES), whole)


def test_parts_of_another_run_are_refused(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "out")
    with parts.writing({"top_k": 1}):
        parts.write(0, {"x": [1]}, {"x": "Int64"})
        with pytest.raises(DataError, match="another process"), Parts(tmp_path / "out").writing({"top_k": 1}):
            pass
    with pytest.raises(DataError, match="an earlier run with another top_k"), parts.writing({"top_k": 2}):
        pass
    with parts.writing({"top_k": 1}):
        assert parts.missing(3) == [1, 2]
