"""GammaBatch in a real Spark of one machine, where there is one (pyspark and a Java)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gamma_kg import Gamma, GammaBatch, KnowledgeGraph

# A process of its own: Spark leaves threads and sockets behind that pytest would complain of.
PROGRAM = """
import sys
from gamma_kg import GammaBatch
from pyspark.sql import SparkSession

graph, model = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = [("Ann", "mother of", "?"), (None, "lives in", "Nairobi"), ("Dan", "father of", None)]
queries = spark.createDataFrame(rows, "head string, relation string, tail string").repartition(2)
answers = queries.mapInPandas(GammaBatch(graph, model, top_k=2, local=5), schema=GammaBatch.SPARK_SCHEMA)
for row in sorted(answers.collect(), key=lambda row: (row.relation, row["rank"])):
    print(row.head, row.relation, row.tail, row["rank"], repr(row.score), row.local, row.is_sampled, sep="\t")
spark.stop()
"""


def test_answers_in_spark_are_those_of_a_plain_loop(tmp_path: Path, family: KnowledgeGraph, small_gamma: Gamma) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java")
    import pandas as pd

    graph, model = tmp_path / "family.gamma", tmp_path / "small.safetensors"
    family.save(graph)
    small_gamma.save(model)
    arguments = [sys.executable, "-c", PROGRAM, str(graph), str(model)]
    world = {**os.environ, "PYSPARK_PYTHON": sys.executable}  # what Spark starts its workers with
    found = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False, env=world)
    assert found.returncode == 0, found.stderr[-2000:]
    queries = pd.DataFrame(
        {
            "head": ["Ann", None, "Dan"],
            "relation": ["mother of", "lives in", "father of"],
            "tail": ["?", "Nairobi", None],
        }
    )
    plain = GammaBatch(graph, model, top_k=2, local=5)(queries).sort_values(["relation", "rank"])
    columns = ["head", "relation", "tail", "rank", "score", "local", "is_sampled"]
    rows = plain[columns].itertuples(index=False)
    expected = [[repr(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    assert [line.split("\t") for line in found.stdout.splitlines()] == expected
