"""The slow way to answer a formula: every entity is tested against the definition, every derivation is listed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from gamma_kg.logic.formula import Along, And, Entity, Everything, Formula, Not, Or

Fact = tuple[int, int, int]


class Slow:
    """Facts as a set of triples (start, relation or inverse, end)."""

    def __init__(self, triples: np.ndarray, num_entities: int, num_relations: int) -> None:
        self.num_entities = num_entities
        self.facts = {(h, r, t) for h, r, t in triples.tolist()}
        self.facts |= {(t, r + num_relations, h) for h, r, t in triples.tolist()}

    def answers(self, formula: Formula) -> set[int]:
        return {x for x in range(self.num_entities) if self.holds(formula, x)}

    def holds(self, formula: Formula, x: int) -> bool:
        match formula:
            case Entity(entity=e):
                return x == e
            case Everything():
                return True
            case Along(relation=r, of=of):
                return any((s, r, x) in self.facts and self.holds(of, s) for s in range(self.num_entities))
            case And(members=members):
                return all(self.holds(part, x) for part in members)
            case Or(members=members):
                return any(self.holds(part, x) for part in members)
            case Not(of=of):
                return not self.holds(of, x)
        raise AssertionError(formula)

    def derivations(self, formula: Formula, x: int) -> Iterator[frozenset[Fact]]:
        """The sets of facts from which x follows; what is denied uses none."""
        match formula:
            case Along(relation=r, of=of):
                for s in range(self.num_entities):
                    if (s, r, x) in self.facts:
                        for used in self.derivations(of, s):
                            yield used | {(s, r, x)}
            case And(members=members):
                if self.holds(formula, x):
                    parts = [list(self.derivations(part, x)) for part in members if not isinstance(part, Not)]
                    for choice in product(*parts):
                        yield frozenset().union(*choice)
            case Or(members=members):
                for part in members:
                    yield from self.derivations(part, x)
            case _:
                if self.holds(formula, x):
                    yield frozenset()


def random_triples(seed: int, num_entities: int, num_relations: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    limits = (num_entities, num_relations, num_entities)
    return np.unique(np.stack([rng.integers(0, limit, count) for limit in limits], axis=1), axis=0)
