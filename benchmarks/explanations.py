"""Do the facts that an explanation names decide the answer? Comprehensiveness and sufficiency, graph by graph.

    python benchmarks/explanations.py --out results/explanations demo ../shared/sources/umls.txt codex-s

Facts of the graph are drawn with a seed and asked for as if they were unknown; those that come first are explained, as
many as --facts says. p is the answer's share among its rivals. Comprehensiveness is how far p falls when the k named
facts are taken out, sufficiency how far it falls when they are all that is left: the one should be high, the other
low. Beside the named facts stand as many drawn from those within two steps of the two ends (the mean of --draws), and
the nearest: those of the head and of the tail in turns, of the thing with fewer facts first. What is done stays in
--out, so that a long run can be cut into pieces; without graphs the tables of all that is there are printed.

With --one-left facts are drawn whose head has just one other fact, whatever their rank: is that one named?
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.demo import demo_graph
from gamma_kg.explain.asked import Asked, Neighbourhood, Triple
from gamma_kg.explain.explain import Explanation
from gamma_kg.io.journal import Journal, read_records
from gamma_kg.machine.memory import budget
from gamma_kg.predicting.background import BackgroundCache
from gamma_kg.predicting.relation_cache import RelationCache, relation_states
from gamma_kg.predicting.switch import local_triples, neighbourhood_sizes
from gamma_kg.rules import rules_of

SIZES = (1, 5)
MOST = max(SIZES)
STATES, BACKGROUNDS = RelationCache(), BackgroundCache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", help="demo, a benchmark set's name (its graph for test), or a file")
    parser.add_argument("--facts", type=int, default=20)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one-left", action="store_true")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    gamma = Gamma.from_pretrained() if given.graphs else None
    for name in given.graphs:
        assert gamma is not None
        measure(gamma, name, given)
    show(given.out)


def measure(gamma: Gamma, name: str, given: argparse.Namespace) -> None:
    """Explains facts of one graph until there are enough, and writes each down."""
    kg = _graph(name, given.data_dir)
    rng = np.random.default_rng(given.seed)
    drawn = kg.triples.numpy()[rng.permutation(kg.num_triples)]
    if given.one_left:
        degree = np.bincount(drawn[:, (0, 2)].ravel(), minlength=kg.num_entities)
        drawn = drawn[degree[drawn[:, 0]] == 2]
    made_by = {"graph": kg.fingerprint(), "model": gamma.fingerprint(), "seed": given.seed, "draws": given.draws}
    journal = Journal(given.out / f"{Path(name).stem}{'.one-left' if given.one_left else ''}.jsonl", made_by)
    done = {tuple(block["fact"]): block for block in journal.blocks}
    found = 0
    for number, fact in enumerate(map(tuple, drawn.tolist())):
        if found == given.facts:
            break
        if fact not in done:
            done[fact] = {"fact": fact, **_row(gamma, kg, fact, np.random.default_rng((given.seed, number)), given)}
            journal.add(done[fact])
        found += "p" in done[fact]
        print(f"{name}: {found} of {given.facts} facts, {number + 1} asked for", end="\r", flush=True)
    journal.close()
    print()


def _graph(name: str, data_dir: Path | None) -> KnowledgeGraph:
    if name == "demo":
        return demo_graph()
    if Path(name).exists():
        return KnowledgeGraph.from_file(name, progress=False)
    split = load_benchmark(name, data_dir).split("test")
    return KnowledgeGraph(split.graph, split.entities, split.relations)


def _row(
    gamma: Gamma, kg: KnowledgeGraph, fact: Triple, rng: np.random.Generator, given: argparse.Namespace
) -> dict[str, Any]:
    """p, and the falls of p for each way to choose facts; nothing where the answer does not come first."""
    asked = _asked(gamma, kg, fact)
    if (asked.standing.rank > 1 and not given.one_left) or asked.is_outside:
        return {}
    names = kg.entities[fact[0]], kg.relations[fact[1]], kg.entities[fact[2]]
    why = gamma.explain(kg, head=names[0], relation=names[1], tail=names[2], num_facts=MOST)
    near = _near(asked)
    chosen: dict[str, list[list[Triple]]] = {
        "named": [_ids(kg, _named(why))],
        "paths": [_ids(kg, [(s.head, s.relation, s.tail) for path in why.paths for s in path.steps])],
        "nearest": [list(_nearest(near, fact))],
        "random": [[near[i] for i in rng.permutation(len(near))[:MOST]] for _ in range(given.draws)],
    }
    row: dict[str, Any] = {"p": asked.standing.share, "cause": why.cause, "only": _only(near, fact, chosen["named"][0])}
    for way, lists in chosen.items():
        row[way] = {
            "without": _falls(asked, lists, asked.without),
            "with only": _falls(asked, lists, asked.with_only),
        }
    return row


def _falls(asked: Asked, lists: list[list[Triple]], ask: Callable[[list[Triple]], Any]) -> list[float]:
    """For each size the mean fall of p."""
    p = asked.standing.share
    return [float(np.mean([p - ask(triples[:size]).share for triples in lists])) for size in SIZES]


def _asked(gamma: Gamma, kg: KnowledgeGraph, fact: Triple) -> Asked:
    """The query as `Gamma.explain` asks it."""
    triples, memory = local_triples(kg, "auto"), budget(None)
    states = relation_states(gamma.model, kg, torch.tensor([fact[1]]), STATES, memory)
    near = None
    if triples is not None:
        background = BACKGROUNDS.of(gamma.model, kg, fact[1], STATES, memory)
        facts_of_head = int(kg.edges.degrees(torch.tensor([fact[0]])))
        near = Neighbourhood(neighbourhood_sizes(kg, triples, facts_of_head), background)
    return Asked(gamma.model, kg, fact, states, (), near, rules_of(kg).without(*fact[:2]))


def _named(why: Explanation) -> Iterator[tuple[str, str, str]]:
    """What a reader is told to look at: the pair that decides where one does, then the single facts in their order."""
    for pair in why.pairs[:1]:
        yield pair.first
        yield pair.second
    for one in why.facts:
        yield one.head, one.relation, one.tail


def _ids(kg: KnowledgeGraph, facts: Any) -> list[Triple]:
    ids = ((kg.entity_id(h), kg.relation_id(r), kg.entity_id(t)) for h, r, t in facts)
    return list(dict.fromkeys(ids))[:MOST]


def _near(asked: Asked) -> list[Triple]:
    """Facts within two steps of head or tail; the fact in question is gone already."""
    fact_E3 = np.unique(asked.facts(), axis=0)
    reached = np.array([asked.fact[0], asked.fact[2]])
    for _ in range(2):
        touched = np.isin(fact_E3[:, 0], reached) | np.isin(fact_E3[:, 2], reached)
        reached = np.unique(fact_E3[touched][:, (0, 2)])
    return [(h, r, t) for h, r, t in fact_E3[touched].tolist()]


def _nearest(near: list[Triple], fact: Triple) -> Iterator[Triple]:
    ends = [[triple for triple in near if end in (triple[0], triple[2])] for end in (fact[0], fact[2])]
    ends.sort(key=len)
    in_turns = chain.from_iterable(zip_longest(*ends))
    yield from list(dict.fromkeys(triple for triple in in_turns if triple is not None))[:MOST]


def _only(near: list[Triple], fact: Triple, named: list[Triple]) -> bool | None:
    """Whether the head's only fact is among the named ones; None if it has several or none."""
    own = [triple for triple in near if fact[0] in (triple[0], triple[2])]
    return own[0] in named if len(own) == 1 else None


def show(out: Path) -> None:
    """A table for each measure, and how often the only fact of a head was named."""
    rows = {path.stem: _read(path) for path in sorted(out.glob("*.jsonl"))}
    ways = ("named", "paths", "nearest", "random")
    for measure_, title in (("without", "comprehensiveness"), ("with only", "sufficiency")):
        print(f"\n| {title} | facts explained | p | " + " | ".join(f"{way} {k}" for k in SIZES for way in ways) + " |")
        print("|---" * (3 + len(SIZES) * len(ways)) + "|")
        for name, found in rows.items():
            cells = [np.mean([row[way][measure_][at] for row in found]) for at in range(len(SIZES)) for way in ways]
            p = np.mean([row["p"] for row in found])
            print(f"| {name} | {len(found)} | {p:.2f} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    for name, found in rows.items():
        only = [row["only"] for row in found if row["only"] is not None]
        causes = {cause: sum(row["cause"] == cause for row in found) for cause in ("one", "two", "many", "none")}
        print(f"{name}: the head's only fact was named in {sum(only)} of {len(only)} cases; causes {causes}")


def _read(path: Path) -> list[dict[str, Any]]:
    return [row for row in read_records(path)[1:] if "p" in row]


if __name__ == "__main__":
    main()
