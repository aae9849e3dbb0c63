"""The graph of relations: which ends of two relations meet in an entity (docs/model.md §2).

Nodes are the edge types of the entity graph (relations and inverses). Types of edges between them, in this order:
head-to-head, tail-to-tail, head-to-tail, tail-to-head. A relation meets itself, and edges carry no weights.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gamma_kg.graph.edges import Edges

EDGE_TYPES = ("h2h", "t2t", "h2t", "t2h")
# i-h2t-j says that a head of i is a tail of j, which read from j is j-t2h-i; the other two are symmetric.
INVERSE_TYPES = (0, 1, 3, 2)


def build_relation_graph(edges: Edges) -> Edges:
    """The relation graph of an entity graph, from one sparse product."""
    relation, node = edges.group_type.numpy(), edges.group_node.numpy()
    num_relations, inverse = edges.num_types, edges.inverse.numpy()
    ones = np.ones(len(relation), dtype=np.int32)
    # A group (node, relation) says just this: the node is a head of the relation. The tails of a relation are the
    # heads of its inverse, so all four kinds of meeting are found in this one matrix.
    heads = sp.csr_array((ones, (relation, node)), shape=(num_relations, edges.num_nodes))
    meet_i, meet_j = (heads @ heads.T).nonzero()
    ends = {"h": np.arange(num_relations), "t": inverse}
    rows = [ends[name[0]][meet_i] for name in EDGE_TYPES]
    columns = [ends[name[2]][meet_j] for name in EDGE_TYPES]
    types = np.repeat(np.arange(len(EDGE_TYPES)), len(meet_i))
    return Edges.build(np.concatenate(rows), types, np.concatenate(columns), num_relations, np.asarray(INVERSE_TYPES))
