"""How long things take on graphs of 10^4, 10^5 and 10^6 facts: reading, rules, describing, first and further queries,
choosing what a completion asks, and each question of it.

CPU seconds of all threads together, so that other programs on the machine change little; the clock shows less where
threads share the work. The graphs are generated (`generate_graph.py`): ten facts an entity, hubs, 300 relations.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.complete.choice import Choice
from gamma_kg.complete.proposals import promising_queries
from gamma_kg.rules import rules_of

SIZES = (10_000, 100_000, 1_000_000)
SECONDS = 30.0  # that the completion runs for, beside choosing


def measure(num_facts: int, folder: Path, queries: int) -> list[str]:
    """One row of the table."""
    path, made = folder / f"{num_facts}.tsv", folder / str(num_facts)
    program = [sys.executable, str(Path(__file__).with_name("generate_graph.py")), str(num_facts)]
    subprocess.run([*program, "--entities", str(num_facts // 10), "--out", str(made)], check=True, capture_output=True)
    pl.scan_parquet(made / "*.parquet").collect().write_csv(path, separator="\t")
    start = time.process_time()
    kg = KnowledgeGraph.from_file(path)
    read = time.process_time()
    found = rules_of(kg)
    found.patterns.describe(0)
    found.without(*kg.triples[0, :2].tolist())
    ruled = time.process_time()
    kg.describe()
    described = time.process_time()
    gamma = Gamma.from_pretrained()
    facts = [fact for fact, _ in zip(kg, range(queries + 1), strict=False)]
    loaded = time.process_time()
    gamma.predict(kg, head=facts[0][0], relation=facts[0][1])
    first = time.process_time()
    for head, relation, _ in facts[1:]:
        gamma.predict(kg, head=head, relation=relation)
    asked = time.process_time()
    promising_queries(kg, Choice.of(kg))
    chosen = time.process_time()
    # It chooses again, and has the tables that the first time made.
    completion = complete(gamma, kg, budget_seconds=SECONDS + chosen - asked)
    each_question = (time.process_time() - chosen) / max(completion.queries_asked, 1)
    size = f"{path.stat().st_size / 1e6:.1f} MB"
    each = (asked - first) / queries
    times = (read - start, ruled - read, described - ruled, first - loaded, each, chosen - asked, each_question)
    return [f"{num_facts:,}", f"{kg.num_entities:,}", size, *(f"{seconds:.2g} s" for seconds in times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", type=int, default=10)
    options = parser.parse_args()
    print(
        "| facts | entities | file | read | find rules | describe | first query | each further one "
        "| choose what to ask | each question of complete |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            print(f"| {' | '.join(measure(size, Path(folder), options.queries))} |", flush=True)


if __name__ == "__main__":
    main()
