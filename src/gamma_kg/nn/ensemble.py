"""Several models that answer as one: the mean of their scores, each with its share.

Scores are logarithms of shares up to a constant per query, so their mean ranks as the mean of log-probabilities does.
B queries, C candidates, U relations that are asked about, R relations and inverses, Q channels of their states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from gamma_kg.errors import ConfigError
from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.nn.model import GammaModel, RelationStates, Scores


class GammaEnsemble(GammaModel):
    """Members that want the same graph of relations; each has its own weights, relation states and branch weights."""

    share_M: Tensor  # of each member; a buffer, so that it is part of what tells one ensemble from another

    def __init__(self, members: Sequence[GammaModel], shares: Sequence[float] | None = None) -> None:
        nn.Module.__init__(self)
        share_M = torch.tensor(shares or [1.0] * len(members))
        if len(share_M) != len(members) or not bool((share_M > 0).all()):
            raise ConfigError(f"wanted a share above 0 for each of {len(members)} models, got {share_M.tolist()}")
        self.register_buffer("share_M", share_M / share_M.sum())
        kinds = {member.config.relation_graph for member in members}
        if len(kinds) != 1:
            raise ConfigError(
                f"models of one ensemble need the same graph of relations, got {', '.join(sorted(kinds))}"
            )
        self.config = members[0].config
        self.members = nn.ModuleList(members)
        self.relation_encoder = nn.ModuleList(member.relation_encoder for member in members)
        self.score = members[0].score

    @property
    def num_parameters(self) -> int:
        return sum(member.num_parameters for member in self._models())

    @property
    def query_width(self) -> int:
        return sum(member.query_width for member in self._models())

    @property
    def table_width(self) -> int:
        return sum(member.table_width for member in self._models())

    def encode_relations(self, relation_graph: Edges, relation_U: Tensor) -> Tensor:
        """The members' states side by side, (U, R, sum of Q)."""
        return torch.cat([member.encode_relations(relation_graph, relation_U) for member in self._models()], dim=-1)

    def score_entities(
        self,
        edges: EdgeGroups,
        relations: RelationStates,
        starts: Starts,
        relation_B: Tensor,
        candidate_BC: Tensor | None = None,
    ) -> Scores:
        """Mean of the members' scores; the branch weights are those of the first."""
        return self._mean(
            member.score_entities(edges, own, starts, relation_B, candidate_BC) for member, own in self._each(relations)
        )

    @torch.no_grad()
    def score_neighbourhoods(
        self, edges: EdgeGroups, offset_B1: Tensor, relations: RelationStates, starts: Starts, relation_B: Tensor
    ) -> Scores:
        """The same for small graphs side by side."""
        return self._mean(
            member.score_neighbourhoods(edges, offset_B1, own, starts, relation_B)
            for member, own in self._each(relations)
        )

    def relation_tables(self, state_URQ: Tensor) -> list[list[Tensor]]:
        """The branches of all members, one after the other."""
        return [table for member, own in self._states(state_URQ) for table in member.relation_tables(own)]

    def _each(self, relations: RelationStates) -> Iterator[tuple[GammaModel, RelationStates]]:
        """Every member with its own part of the relation states."""
        branch = 0
        for member, state_URQ in self._states(relations.state_URQ):
            end = branch + member.config.num_branches
            tables = None if relations.tables is None else relations.tables[branch:end]
            yield member, RelationStates(state_URQ, relations.which_B, tables)
            branch = end

    def _states(self, state_URQ: Tensor) -> Iterator[tuple[GammaModel, Tensor]]:
        widths = [member.query_width for member in self._models()]
        for member, part in zip(self._models(), state_URQ.split(widths, dim=-1), strict=True):
            yield member, part.contiguous()

    def _models(self) -> list[GammaModel]:
        return [member for member in self.members if isinstance(member, GammaModel)]

    def _mean(self, parts: Iterable[Scores]) -> Scores:
        found = list(parts)
        share_M = self.share_M.view(-1, *[1] * found[0].score_BC.dim())
        return Scores((torch.stack([scores.score_BC for scores in found]) * share_M).sum(0), found[0].weight_BCK)
