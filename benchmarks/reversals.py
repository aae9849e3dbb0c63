"""How often the first answer reverses a stored fact of a relation that never holds both ways, with rules and without.

python benchmarks/reversals.py GRAPH… [--queries 200]: queries from both ends of facts of relations without one
symmetric pair, drawn with a seed; one line per graph.
"""

from __future__ import annotations

import argparse

import numpy as np

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.demo import demo_graph
from gamma_kg.rules import rules_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    gamma = Gamma.from_pretrained()
    for path in options.graphs:
        kg = demo_graph() if path == "demo" else KnowledgeGraph.from_file(path, progress=False)
        patterns = rules_of(kg).patterns
        never = np.flatnonzero((patterns.reversed == 0) & (patterns.proper > 0))
        triples = kg.triples.numpy()
        triples = triples[np.isin(triples[:, 1], never)]
        chosen = triples[np.random.default_rng(0).permutation(len(triples))[: options.queries // 2]]
        queries = [(kg.entities[h], kg.relations[r], None) for h, r, _ in chosen.tolist()]
        queries += [(None, kg.relations[r], kg.entities[t]) for _, r, t in chosen.tolist()]
        stored = {tuple(triple) for triple in triples.tolist()}
        shares = []
        for rules in (False, True):
            reversed_, asked = 0, 0
            for _, found in gamma.predict_many(kg, queries, top_k=1, rules=rules):
                for first in found:
                    fact = (kg.entity_id(first.tail), kg.relation_id(first.relation), kg.entity_id(first.head))
                    reversed_ += fact in stored
                    asked += 1
            shares.append(f"{reversed_} of {asked} ({reversed_ / max(asked, 1):.1%})")
        print(f"{path}: {kg.num_triples:,} facts; first answers reversed: {shares[0]} without, {shares[1]} with rules")


if __name__ == "__main__":
    main()
