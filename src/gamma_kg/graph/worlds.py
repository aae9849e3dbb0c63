"""Rule worlds: small graphs made up for training, a new one for each draw. numpy only.

Entities have types. Base relations connect two types in one of several shapes (at random with hubs, a function, a
tree). Derived relations follow from others by a Horn rule, with exceptions and noise:

    copy      r(x, y) ← s(x, y)              swap      r(x, y) ← s(y, x)
    chain     r(x, z) ← s(x, y), t(y, z)     siblings  r(x, z) ← s(x, y), s(z, y)
    closed    r(x, y) ← r(y, x), from s      further   r(x, z) ← s(x, y), s(y, z) and r ← s
    marked    r(x, y) ← s(x, y), y has a mark that no fact names, only the relations that ask for it

So the facts that a draw leaves out can be found by reasoning, which in real graphs only some can.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
SHAPES = ("random", "function", "tree")
RULES = ("copy", "swap", "chain", "siblings", "closed", "further", "marked")
# A rule that explodes (siblings under a hub) keeps so many facts, drawn at random.
MOST_FACTS = 3_000


@dataclass
class Relation:
    """Facts as a sparse matrix over entities, and the types of its two ends."""

    facts: sp.csr_array
    domain: int
    range: int


@dataclass
class World:
    """A world while it is made."""

    rng: np.random.Generator
    members: list[IntArray]  # entities of each type
    num_entities: int
    marks: list[NDArray[np.bool_]]  # hidden properties: which entities have each
    relations: list[Relation] = field(default_factory=list)


def make_world(rng: np.random.Generator, entities: tuple[int, int] = (100, 2000)) -> IntArray:
    """All facts of a new world as triples, [n, 3]. Ids are not packed: an entity or relation may have no fact."""
    size = round(float(np.exp(rng.uniform(np.log(entities[0]), np.log(entities[1])))))
    num_types = int(rng.integers(1, 9))
    kind = rng.choice(num_types, size=size, p=rng.dirichlet(np.full(num_types, 2.0)))
    marks = [rng.random(size) < rng.uniform(0.2, 0.8) for _ in range(2)]
    world = World(rng, [m for t in range(num_types) if len(m := np.flatnonzero(kind == t)) > 3], size, marks)
    for _ in range(int(rng.integers(2, 13))):
        world.relations.append(_base(world))
    for _ in range(int(rng.integers(2, 16))):
        if (derived := _derived(world)) is not None:
            world.relations.append(derived)
    parts = []
    # Some premises are no relation of the world: rules then show by their other traces only.
    for number, relation in enumerate(world.relations):
        if number and rng.random() < 0.1:
            continue
        head, tail = relation.facts.nonzero()
        parts.append(np.column_stack((head, np.full(len(head), number), tail)))
    return np.concatenate(parts).astype(np.int64)


def _matrix(world: World, head: IntArray, tail: IntArray) -> sp.csr_array:
    """Facts without repetitions and without loops, thinned out to `MOST_FACTS`."""
    key = np.unique(head[head != tail] * world.num_entities + tail[head != tail])
    if len(key) > MOST_FACTS:
        key = world.rng.choice(key, size=MOST_FACTS, replace=False)
    shape = (world.num_entities, world.num_entities)
    return sp.csr_array((np.ones(len(key), dtype=np.int32), (key // shape[0], key % shape[0])), shape=shape)


def _popular(world: World, members: IntArray, count: int) -> IntArray:
    """Members drawn with the skew of a random Zipf law: some relations have hubs, some have none."""
    weight = (1.0 + np.arange(len(members))) ** -world.rng.uniform(0, 1.3)
    return world.rng.choice(world.rng.permutation(members), size=count, p=weight / weight.sum())


def _base(world: World) -> Relation:
    rng = world.rng
    domain, range_ = (int(t) for t in rng.integers(len(world.members), size=2))
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    heads, tails = world.members[domain], world.members[range_]
    if shape == "tree":
        range_ = domain
        order = rng.permutation(heads)
        # Each entity's parent is one of those before it; a small factor makes the tree deep.
        parent = (rng.random(len(order)) ** rng.uniform(0.5, 2) * np.arange(len(order))).astype(np.int64)
        return Relation(_matrix(world, order[1:], order[parent][1:]), domain, range_)
    if shape == "function":
        having = heads[rng.random(len(heads)) < rng.uniform(0.3, 1)]
        return Relation(_matrix(world, having, _popular(world, tails, len(having))), domain, range_)
    count = min(MOST_FACTS, max(4, round(len(heads) * float(np.exp(rng.uniform(np.log(0.3), np.log(4)))))))
    return Relation(_matrix(world, _popular(world, heads, count), _popular(world, tails, count)), domain, range_)


def _derived(world: World) -> Relation | None:
    """A relation that follows from others; None where the drawn rule has nothing to say."""
    rng = world.rng
    rule = RULES[int(rng.integers(len(RULES)))]
    s = _read(world)
    domain, range_ = s.domain, s.range
    if rule == "copy":
        facts = s.facts
    elif rule == "swap":
        facts, domain, range_ = s.facts.T.tocsr(), s.range, s.domain
    elif rule == "siblings":
        facts, range_ = s.facts @ s.facts.T, s.domain
    elif rule == "closed":
        facts = s.facts + s.facts.T
    elif rule == "marked":
        mark = world.marks[int(rng.integers(len(world.marks)))] ^ (rng.random() < 0.5)
        facts = s.facts @ sp.diags_array(mark.astype(np.int32), dtype=np.int32).tocsr()
    elif rule == "further":
        facts = s.facts + s.facts @ s.facts
    else:
        fitting = [t for t in (_read(world) for _ in range(8)) if t.domain == s.range]
        if not fitting:
            return None
        facts, range_ = s.facts @ fitting[0].facts, fitting[0].range
    head, tail = (ends.astype(np.int64) for ends in facts.nonzero())
    kept = rng.random(len(head)) < rng.uniform(0.5, 1)
    if kept.sum() < 4:
        return None
    noise = round(float(kept.sum()) * max(0.0, float(rng.uniform(-0.2, 0.3))))
    head = np.concatenate((head[kept], rng.choice(world.members[domain], size=noise)))
    tail = np.concatenate((tail[kept], rng.choice(world.members[range_], size=noise)))
    return Relation(_matrix(world, head, tail), domain, range_)


def _read(world: World) -> Relation:
    """A relation of the world, or one read from its other end."""
    relation = world.relations[int(world.rng.integers(len(world.relations)))]
    if world.rng.random() < 0.3:
        return Relation(relation.facts.T.tocsr(), relation.range, relation.domain)
    return relation
