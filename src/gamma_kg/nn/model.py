"""GammaModel: relation encoder → K entity branches → fusion → score (docs/model.md §4-§6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.graph.relation_pairs import KINDS
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.union import part_of_union, ranges, starts_in
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.encoder import Encoder, relation_of_queries
from gamma_kg.nn.fusion import BranchAttention, Score


class Scores(NamedTuple):
    """What the model says of each candidate."""

    score_BC: Tensor
    weight_BCK: Tensor | None  # branch weights; None where the model has no attention


class RelationStates(NamedTuple):
    """Relation states for U distinct relations, and which of them each query uses."""

    state_URD: Tensor
    which_B: Tensor


class GammaModel(nn.Module):
    """Scores the candidates of queries (start, relation) on any graph.

    1. relation states: an encoder on the relation graph, conditioned on the query's relation
    2. entity states: K encoders on the entity graph, each with its own algebra, from the query's start
    3. fusion: attention weighs the branches, an MLP gives the score
    """

    def __init__(self, config: GammaConfig) -> None:
        super().__init__()
        self.config = config
        self.relation_encoder = Encoder(
            config.dim,
            config.relation_layers or config.num_layers,
            config.relation_algebra,
            num_types=len(KINDS[config.relation_graph][0]),
            aggregation=config.aggregation,
        )
        self.branches = nn.ModuleList(
            Encoder(config.dim, config.num_layers, name, aggregation=config.aggregation) for name in config.branches
        )
        has_attention = config.num_branches > 1 and config.attention != "none"
        self.attention = BranchAttention(config) if has_attention else None
        self.score = Score(config)

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

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
        """States of all relations and inverses as seen from each of `relation_U`, (U, R, D)."""
        ones_UD = self.score.hidden.weight.new_ones(len(relation_U), self.config.dim)
        states_URD: Tensor = self.relation_encoder(relation_graph, Starts.single(relation_U), ones_UD)
        return states_URD

    def score_entities(
        self,
        edges: EdgeGroups,
        relations: RelationStates,
        starts: Starts,
        relation_B: Tensor,
        candidate_BC: Tensor | None = None,
    ) -> Scores:
        """Entity branches, fusion and score for given relation states."""
        query_BD = relations.state_URD[relations.which_B, relation_B]
        z_KBCD = self.encode_entities(edges, relations, starts, query_BD)
        if candidate_BC is not None:
            query_B1 = torch.arange(len(starts), device=query_BD.device)[:, None]
            z_KBCD = [z_BND[query_B1, candidate_BC] for z_BND in z_KBCD]
        return self.fuse(z_KBCD, query_BD)

    @torch.no_grad()
    def score_neighbourhoods(
        self, edges: EdgeGroups, offset_B1: Tensor, relations: RelationStates, starts: Starts, relation_B: Tensor
    ) -> Scores:
        """Scores (N,) and branch weights (N, K) of all nodes of B small graphs side by side, a query for each.

        The nodes of query b are offset[b] : offset[b + 1], and `starts` are such nodes. No gradients.
        """
        query_BD = relations.state_URD[relations.which_B, relation_B]
        if self._fuses_early:
            z_BKnD = [
                self._encode_fused(
                    part_of_union(edges, nodes),
                    RelationStates(relations.state_URD, relations.which_B[b : b + 1]),
                    starts_in(starts, b, nodes),
                    query_BD[b : b + 1],
                )
                for b, nodes in ranges(offset_B1)
            ]
            z_KND = [torch.cat([z_1nD[0] for z_1nD in of_branch]) for of_branch in zip(*z_BKnD, strict=True)]
        else:
            z_KND = [
                branch.forward_union(edges, offset_B1, starts, query_BD, *relations)
                for branch in self.branches
                if isinstance(branch, Encoder)
            ]
        weights = self.score.weights(None if self.attention is None else self.attention.weights(query_BD))
        return Scores(*backend_of(query_BD.device).union_score(z_KND, offset_B1, query_BD, weights))

    @property
    def _fuses_early(self) -> bool:
        return self.config.position == "early" and self.config.num_branches > 1

    def encode_entities(
        self, edges: EdgeGroups, relations: RelationStates, starts: Starts, query_BD: Tensor
    ) -> list[Tensor]:
        """Entity states of every branch, K times (B, N, D)."""
        if self._fuses_early:
            return self._encode_fused(edges, relations, starts, query_BD)
        return [branch(edges, starts, query_BD, *relations) for branch in self.branches]

    def fuse(self, z_KBCD: Sequence[Tensor], query_BD: Tensor) -> Scores:
        """Scores and branch weights of candidates whose states are given."""
        weights = self.score.weights(None if self.attention is None else self.attention.weights(query_BD))
        dropout = self.config.attention_dropout if self.training else 0.0
        return Scores(*backend_of(query_BD.device).score(z_KBCD, query_BD, weights, dropout))

    def _encode_fused(
        self, edges: EdgeGroups, relations: RelationStates, starts: Starts, query_BD: Tensor
    ) -> list[Tensor]:
        """Early fusion: after every layer but the last, all branches go on from the weighted sum of their states."""
        x_BND = starts.spread(edges.num_nodes, query_BD)
        z_KBND: list[Tensor] = []
        stacks = [branch.layers for branch in self.branches]
        for step, layers in enumerate(zip(*stacks, strict=True)):
            if step:
                x_BND = self._weighted_sum(z_KBND, query_BD)
            z_KBND = [layer(edges, x_BND, relation_of_queries(layer, *relations), starts, query_BD) for layer in layers]
        return z_KBND

    def _weighted_sum(self, z_KBND: Sequence[Tensor], query_BD: Tensor) -> Tensor:
        if self.attention is None:
            return torch.stack(list(z_KBND)).mean(0)
        weight_BNK = self.attention(z_KBND, query_BD)
        return sum((z * weight_BNK[..., k, None] for k, z in enumerate(z_KBND)), torch.zeros_like(z_KBND[0]))
