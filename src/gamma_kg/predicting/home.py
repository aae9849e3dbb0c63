"""The graph that an adapted model was adapted to: remembered as hashes of names, recognised when it has grown."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any

from gamma_kg.graph.graph import KnowledgeGraph

# Enough to tell graphs apart; hashes, so that a file of weights gives no names away.
SAMPLE = 200
# A graph that has lost or renamed more than this of the sample is another graph.
FEWEST_KNOWN = 0.5


class OtherGraphWarning(UserWarning):
    """A model that was adapted to one graph is used on another."""


def describe_home(kg: KnowledgeGraph, name: str) -> dict[str, Any]:
    """What a checkpoint keeps of the graph it was adapted to."""
    step = max(1, kg.num_entities // SAMPLE)
    sample = [_hash(kg.entities[i]) for i in range(0, kg.num_entities, step)][:SAMPLE]
    relations = [_hash(kg.relations[i]) for i in range(min(kg.num_relations, SAMPLE))]
    counts = {"entities": kg.num_entities, "relations": kg.num_relations, "triples": kg.num_triples}
    return {"graph": name, "counts": counts, "entity_hashes": sample, "relation_hashes": relations}


def is_home(home: Mapping[str, Any], kg: KnowledgeGraph) -> bool:
    """Whether this is the graph that was adapted to, give or take what changed since."""
    return all(
        _share_known(home[key], names) >= FEWEST_KNOWN
        for key, names in (("relation_hashes", kg.relations), ("entity_hashes", kg.entities))
    )


def warn_if_elsewhere(provenance: Mapping[str, Any], kg: KnowledgeGraph) -> None:
    """Say once per graph that the weights belong to another one."""
    home = provenance.get("adapted")
    if home is not None and not is_home(home, kg):
        counts = home["counts"]
        warnings.warn(
            f"these weights were adapted to another graph ({home['graph']}: {counts['entities']:,} entities, "
            f"{counts['triples']:,} facts); on this one the bundled weights may be better",
            OtherGraphWarning,
            stacklevel=3,
        )


def _share_known(hashes: list[str], names: Any) -> float:
    if not hashes:
        return 1.0
    present = {_hash(name) for name in names}
    return sum(entry in present for entry in hashes) / len(hashes)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
