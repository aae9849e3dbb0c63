"""Half-links: is the query's half (source, relation) or the answer's half (relation, answer) already in the graph?

A model that has seen both halves can guess from what usually goes with what; one that has seen neither can't.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.inverse import direct_of, is_inverse

STRATA = ("both halves seen", "only query half seen", "only answer half seen", "neither half seen")

IntArray = NDArray[np.int64]


def halflink_strata(
    graph: IntArray, num_entities: int, num_relations: int, source: IntArray, relation: IntArray, answer: IntArray
) -> IntArray:
    """Index into `STRATA` of each query with its answer. Relation ids of `num_relations` and more ask for heads."""
    outgoing = np.unique(graph[:, 1] * num_entities + graph[:, 0])
    incoming = np.unique(graph[:, 1] * num_entities + graph[:, 2])
    is_head_query = is_inverse(relation, num_relations)
    direct = direct_of(relation, num_relations)
    head, tail = np.where(is_head_query, answer, source), np.where(is_head_query, source, answer)
    head_seen = np.isin(direct * num_entities + head, outgoing)
    tail_seen = np.isin(direct * num_entities + tail, incoming)
    query_seen = np.where(is_head_query, tail_seen, head_seen)
    answer_seen = np.where(is_head_query, head_seen, tail_seen)
    return np.select([query_seen & answer_seen, query_seen, answer_seen], [0, 1, 2], 3).astype(np.int64)
