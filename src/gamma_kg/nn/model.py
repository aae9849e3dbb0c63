"""GammaModel: relation encoder → K entity branches → fusion → score (docs/model.md §4-§6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.graph.relation_pairs import KINDS
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.parameters import RelationTables, ScoreWeights
from gamma_kg.kernels.score import part_of_branch
from gamma_kg.kernels.union import part_of_union, ranges, starts_in
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.encoder import Encoder, GivenRelations, relation_of_queries
from gamma_kg.nn.fusion import BranchAttention, Score


class Scores(NamedTuple):
    """What the model says of each candidate."""

    score_BC: Tensor
    weight_BCK: Tensor | None  # branch weights; None where the model has no attention


class RelationStates(NamedTuple):
    """Relation states for U distinct relations, and which of them each query uses."""

    state_URQ: Tensor
    which_B: Tensor
    # What the layers of each branch make of the states: given where it was made before, and for use without gradients.
    tables: Sequence[Sequence[RelationTables]] | None = None

    def of_branch(self, k: int, dim: int) -> GivenRelations:
        """What branch k knows of the relations."""
        tables = None if self.tables is None else self.tables[k]
        return GivenRelations(part_of_branch(self.state_URQ, k, dim), self.which_B, tables)

    def of_query(self, b: int) -> RelationStates:
        """The same for one query alone."""
        return self._replace(which_B=self.which_B[b : b + 1])


class GammaModel(nn.Module):
    """Scores the candidates of queries (start, relation) on any graph.

    1. relation states: an encoder on the relation graph, conditioned on the query's relation; one for all branches,
       or one for each
    2. entity states: K encoders on the entity graph, each with its own algebra, from the query's start
    3. fusion: attention weighs the branches, an MLP gives the score
    """

    def __init__(self, config: GammaConfig) -> None:
        super().__init__()
        self.config = config
        encoders = [_relation_encoder(config) for _ in range(config.num_relation_encoders)]
        self.relation_encoder = encoders[0] if config.relation_encoders == "shared" else nn.ModuleList(encoders)
        self.branches = nn.ModuleList(
            Encoder(config.dim, config.num_layers, name, aggregation=config.aggregation) for name in config.branches
        )
        has_attention = config.num_branches > 1 and config.attention != "none"
        self.attention = BranchAttention(config) if has_attention else None
        self.score = Score(config)

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    @property
    def query_width(self) -> int:
        """Channels of the states of relations, and so of a query vector."""
        return self.config.query_width

    @property
    def table_width(self) -> int:
        """Channels of what all layers of all branches make of the states of a relation."""
        config = self.config
        return int(sum(ALGEBRAS[name].relation_width for name in config.branches) * config.dim * config.num_layers)

    def forward(
        self,
        edges: Edges,
        relation_graph: Edges,
        starts: Starts,
        relation_B: Tensor,
        candidate_BC: Tensor | None = None,
    ) -> Scores:
        """Score the candidates, or all entities. `relation_B` are edge types: an inverse relation asks for heads."""
        relations = self.relation_states(relation_graph, edges.inverse, relation_B)
        return self.score_entities(edges, relations, starts, relation_B, candidate_BC)

    def relation_states(self, relation_graph: Edges, inverse: Tensor, relation_B: Tensor) -> RelationStates:
        """Relation states for queries: conditioned on the direct relation, also where a head is asked for."""
        direct_U, which_B = torch.minimum(relation_B, inverse[relation_B].long()).unique(return_inverse=True)
        return RelationStates(self.encode_relations(relation_graph, direct_U), which_B)

    def encode_relations(self, relation_graph: Edges, relation_U: Tensor) -> Tensor:
        """States of all relations and inverses as seen from each of `relation_U`, (U, R, Q)."""
        ones_UD = self.score.hidden.weight.new_ones(len(relation_U), self.config.dim)
        encoders = [self.relation_encoder] if isinstance(self.relation_encoder, Encoder) else self.relation_encoder
        states = [encoder(relation_graph, Starts.single(relation_U), ones_UD) for encoder in encoders]
        return states[0] if len(states) == 1 else torch.cat(states, dim=-1)

    @torch.no_grad()
    def relation_tables(self, state_URQ: Tensor) -> list[list[Tensor]]:
        """What the layers of each branch make of relation states, (U, R, W)."""
        of_branch = [part_of_branch(state_URQ, k, self.config.dim) for k in range(len(self.branches))]
        branches = [branch for branch in self.branches if isinstance(branch, Encoder)]
        return [branch.tables(state_URD) for branch, state_URD in zip(branches, of_branch, strict=True)]

    def score_entities(
        self,
        edges: EdgeGroups,
        relations: RelationStates,
        starts: Starts,
        relation_B: Tensor,
        candidate_BC: Tensor | None = None,
    ) -> Scores:
        """Entity branches, fusion and score for given relation states."""
        query_BQ = relations.state_URQ[relations.which_B, relation_B]
        z_KBCD = self.encode_entities(edges, relations, starts, query_BQ)
        if candidate_BC is not None:
            query_B1 = torch.arange(len(starts), device=query_BQ.device)[:, None]
            z_KBCD = [z_BND[query_B1, candidate_BC] for z_BND in z_KBCD]
        return self.fuse(z_KBCD, query_BQ)

    @torch.no_grad()
    def score_neighbourhoods(
        self, edges: EdgeGroups, offset_B1: Tensor, relations: RelationStates, starts: Starts, relation_B: Tensor
    ) -> Scores:
        """Scores (N,) and branch weights (N, K) of all nodes of B small graphs side by side, a query for each.

        The nodes of query b are offset[b] : offset[b + 1], and `starts` are such nodes. No gradients.
        """
        query_BQ = relations.state_URQ[relations.which_B, relation_B]
        if self._fuses_early:
            z_BKnD = [
                self._encode_fused(
                    part_of_union(edges, nodes),
                    relations.of_query(b),
                    starts_in(starts, b, nodes),
                    query_BQ[b : b + 1],
                )
                for b, nodes in ranges(offset_B1)
            ]
            z_KND = [torch.cat([z_1nD[0] for z_1nD in of_branch]) for of_branch in zip(*z_BKnD, strict=True)]
        else:
            z_KND = [
                branch.forward_union(edges, offset_B1, starts, boundary_BD, own)
                for branch, own, boundary_BD in self._each_branch(relations, query_BQ)
            ]
        weights = self._score_weights(query_BQ)
        return Scores(*backend_of(query_BQ.device).union_score(z_KND, offset_B1, query_BQ, weights))

    @property
    def _fuses_early(self) -> bool:
        return self.config.position == "early" and self.config.num_branches > 1

    def encode_entities(
        self, edges: EdgeGroups, relations: RelationStates, starts: Starts, query_BQ: Tensor
    ) -> list[Tensor]:
        """Entity states of every branch, K times (B, N, D)."""
        if self._fuses_early:
            return self._encode_fused(edges, relations, starts, query_BQ)
        return [
            branch(edges, starts, boundary_BD, own)
            for branch, own, boundary_BD in self._each_branch(relations, query_BQ)
        ]

    def _each_branch(
        self, relations: RelationStates, query_BQ: Tensor
    ) -> Iterator[tuple[Encoder, GivenRelations, Tensor]]:
        """Every branch, what it knows of the relations, and its query vector."""
        dim = self.config.dim
        for k, branch in enumerate(self.branches):
            assert isinstance(branch, Encoder)
            yield branch, relations.of_branch(k, dim), part_of_branch(query_BQ, k, dim)

    def fuse(self, z_KBCD: Sequence[Tensor], query_BQ: Tensor) -> Scores:
        """Scores and branch weights of candidates whose states are given."""
        dropout = self.config.attention_dropout if self.training else 0.0
        weights = self._score_weights(query_BQ)
        return Scores(*backend_of(query_BQ.device).score(z_KBCD, query_BQ, weights, dropout))

    def _score_weights(self, query_BQ: Tensor) -> ScoreWeights:
        """All that fusion and score multiply by."""
        return self.score.weights(None if self.attention is None else self.attention.weights(query_BQ))

    def _encode_fused(
        self, edges: EdgeGroups, relations: RelationStates, starts: Starts, query_BQ: Tensor
    ) -> list[Tensor]:
        """Early fusion: after every layer but the last, all branches go on from the weighted sum of their states."""
        x_BND = starts.spread(edges.num_nodes, query_BQ)
        z_KBND: list[Tensor] = []
        stacks = [branch.layers for branch in self.branches]
        for step, layers in enumerate(zip(*stacks, strict=True)):
            if step:
                x_BND = self._weighted_sum(z_KBND, query_BQ)
            own = [relation_of_queries(layer, relations.state_URQ, relations.which_B) for layer in layers]
            z_KBND = [
                layer(edges, x_BND, own_BRW, starts, query_BQ) for layer, own_BRW in zip(layers, own, strict=True)
            ]
        return z_KBND

    def _weighted_sum(self, z_KBND: Sequence[Tensor], query_BQ: Tensor) -> Tensor:
        if self.attention is None:
            return torch.stack(list(z_KBND)).mean(0)
        weight_BNK = self.attention(z_KBND, query_BQ)
        return sum((z * weight_BNK[..., k, None] for k, z in enumerate(z_KBND)), torch.zeros_like(z_KBND[0]))


def _relation_encoder(config: GammaConfig) -> Encoder:
    return Encoder(
        config.dim,
        config.relation_layers or config.num_layers,
        config.relation_algebra,
        num_types=len(KINDS[config.relation_graph][0]),
        aggregation=config.aggregation,
    )
