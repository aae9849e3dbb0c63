"""Precision of `complete` on held-out facts: completion_precision.py SET… [--seconds 60] [--model M].

A set is a name of `gamma datasets` or a folder: its inference or train file is the graph, valid and test are the
held-out facts. Proposals that are true but written in neither file count as wrong. Also prints the calibration error
before and after.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.data.benchmark import load_benchmark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    model = Gamma.from_pretrained(arguments.model)
    for name in arguments.sets:
        files = load_benchmark(name).files
        kg = KnowledgeGraph.from_file(files.get("inference") or files["train"], header=False)
        held_out = {
            tuple(line.split("\t"))
            for part in ("valid", "test")
            for line in files[part].read_text(encoding="utf-8").splitlines()
        }
        calibration = model.calibrate(kg, max_hidden=200)
        found = complete(model, kg, top=100, budget_seconds=arguments.seconds)
        hits = [(fact.head, fact.relation, fact.tail) in held_out for fact in found.facts]
        print(
            f"{name}: precision at 50 {sum(hits[:50]) / 50:.2f}, at 100 {sum(hits) / 100:.2f}; "
            f"{found.queries_asked} of {found.queries_in_all} queries; {calibration}",
            flush=True,
        )


if __name__ == "__main__":
    main()
