"""A graph of any size with skewed degrees, as a folder of Parquet files: what `gamma index` is measured on.

    python benchmarks/generate_graph.py 1e8 --entities 1e7 --out /work/big/facts-1e8

Every entity has at least one fact; a few have very many. Relations differ in size by three orders of magnitude, and
each draws its heads and tails from pools of its own, so that entities have something like types. The same numbers and
seed give the same files. Memory is that of the largest relation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def skewed(size: int, count: int, exponent: float, rng: np.random.Generator) -> IntArray:
    """`count` ranks below `size`; rank k is drawn with a probability that falls as (k + 10) to the minus exponent."""
    low, high = 10.0 ** (1 - exponent), (size + 10.0) ** (1 - exponent)
    drawn = (low + rng.random(count) * (high - low)) ** (1 / (1 - exponent)) - 10
    return np.clip(drawn.astype(np.int64), 0, size - 1)


def facts_of(relation_size: int, entities: int, order: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Distinct (head, tail) of one relation; somewhat fewer than asked for where the pools are small."""
    ends = []
    for share in (0.3, 0.1):
        pool_size = max(20, int(entities * share * rng.random() ** 2))
        pool = order[skewed(entities, pool_size, 0.6, rng)]
        ends.append(pool[skewed(pool_size, relation_size, 0.7, rng)])
    pair = np.unique(ends[0] * entities + ends[1])
    return pair // entities, pair % entities


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triples", type=float)
    parser.add_argument("--entities", type=float, help="by default a tenth of the triples")
    parser.add_argument("--relations", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    triples, relations = int(args.triples), args.relations
    entities = int(args.entities or triples // 10)
    rng = np.random.default_rng(args.seed)
    order = rng.permutation(entities)
    weight = (np.arange(relations) + 3.0) ** -1.0
    # What is drawn twice counts once; the excess makes up for it.
    sizes = rng.multinomial(int((triples - entities) * 1.06), weight / weight.sum())
    args.out.mkdir(parents=True, exist_ok=True)
    written = 0
    for number in range(relations + 1):
        if number < relations:
            head, tail = facts_of(int(sizes[number]), entities, order, rng)
            relation = np.full(len(head), number)
        else:  # one fact for every entity, so that none is left out
            head, tail = np.arange(entities), order[skewed(entities, entities, 0.6, rng)]
            relation = rng.integers(relations, size=entities)
        frame = pl.DataFrame({"head": head, "relation": relation, "tail": tail})
        frame = frame.select(
            pl.format("Q{}", "head").alias("head"),
            pl.format("relation {}", "relation").alias("relation"),
            pl.format("Q{}", "tail").alias("tail"),
        )
        frame.write_parquet(args.out / f"part-{number:04}.parquet", compression="lz4")
        written += len(frame)
    print(f"{written:,} facts about {entities:,} entities in {args.out}")


if __name__ == "__main__":
    main()
