"""What probabilities say and how often it holds, per graph: python benchmarks/reliability.py GRAPH… prints a table.

Each half of the queries is judged by a map that was fitted to the other half.
"""

from __future__ import annotations

import sys

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.demo import demo_graph


def main(paths: list[str]) -> None:
    gamma = Gamma.from_pretrained()
    for path in paths:
        kg = demo_graph() if path == "demo" else KnowledgeGraph.from_file(path, progress=False)
        found = gamma.calibration(kg) or gamma.calibrate(kg)
        print(f"{path}: {found}", flush=True)
        for row in found.reliability:
            said = f"said {row.said:.1%}, held {row.held:.1%} ({row.count} proposals)"
            print(f"  {row.low:.0%} to {row.high:.0%}: {said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
