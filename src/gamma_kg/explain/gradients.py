"""How much each edge matters at each layer: the gradient of a score with respect to edge weights.

Give every message f_r(x_v) that edge (u, r, v) adds at u in layer t a weight of 1. The gradient of the score S with
respect to that weight is ⟨∂S/∂agg_u, f_r(x_v)⟩, so the layers' inputs and the gradients at their aggregates
are enough, and no propagation with weights is needed. Branches share the edges: their gradients are summed.

N entities, E edges, D channels, T layers. There is one query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.reference import aggregate, update
from gamma_kg.nn.encoder import Encoder
from gamma_kg.nn.layer import RelationalLayer
from gamma_kg.nn.model import GammaModel, RelationStates

CHUNK_EDGES = 1 << 17


class LayerCall(NamedTuple):
    """What went into one layer of one branch, and what came out."""

    step: int
    layer: RelationalLayer
    x_ND: Tensor
    relation_RW: Tensor
    boundary_BD: Tensor
    out: Tensor


def edge_gradients(
    model: GammaModel, edges: Edges, relations: RelationStates, source: int, relation: int, answer: int
) -> Tensor:
    """Gradient of the answer's score with respect to a weight on each edge in each layer, (T, E)."""
    device = relations.state_URQ.device
    starts = Starts.single(torch.tensor([source], device=device))
    relation_B = torch.tensor([relation], device=device)
    with torch.enable_grad():
        # A leaf with gradient, so that every layer takes its differentiable path even if the weights are frozen.
        query_BQ = relations.state_URQ[relations.which_B, relation_B].detach().requires_grad_()
        calls: list[LayerCall] = []
        handles = [
            layer.register_forward_hook(_recorder(calls, step, edges.num_nodes))
            for branch in model.branches
            if isinstance(branch, Encoder)
            for step, layer in enumerate(branch.layers)
        ]
        try:
            z_KBND = model.encode_entities(edges, relations, starts, query_BQ)
        finally:
            for handle in handles:
                handle.remove()
        z_KB1D = [z_BND[:, answer : answer + 1] for z_BND in z_KBND]
        score = model.fuse(z_KB1D, query_BQ).score_BC[0, 0]
        gradients = torch.autograd.grad(score, [call.out for call in calls], allow_unused=True)
    total_TE = torch.zeros(model.config.num_layers, edges.num_edges, dtype=torch.float64, device=device)
    for call, grad_out in zip(calls, gradients, strict=True):
        if grad_out is not None:
            grad_ND = _at_aggregate(call, edges, starts, grad_out)
            total_TE[call.step] += _per_edge(call, edges, grad_ND)
    return total_TE.cpu()


def _recorder(calls: list[LayerCall], step: int, num_nodes: int) -> Any:
    def record(layer: RelationalLayer, inputs: tuple[Any, ...], out: Tensor) -> None:
        _, x_BND, relation_BRW, starts, boundary_BD = inputs
        boundary_BD = boundary_BD.detach()
        if x_BND is None:
            x_BND = starts.spread(num_nodes, boundary_BD)
        calls.append(LayerCall(step, layer, x_BND[0].detach(), relation_BRW[0].detach(), boundary_BD, out))

    return record


def _at_aggregate(call: LayerCall, edges: Edges, starts: Starts, grad_out: Tensor) -> Tensor:
    """Gradient of the score at the layer's aggregate, (N, D): back through the update of this layer alone."""
    weights, x_1ND = call.layer.weights(), call.x_ND[None]
    with torch.no_grad():
        propagate = backend_of(grad_out.device).propagate
        agg_1ND = aggregate(edges, x_1ND, call.relation_RW[None], starts, call.boundary_BD, weights, propagate)
    with torch.enable_grad():
        agg_1ND.requires_grad_()
        # A number, and no tensor with its gradients: for these torch loads its symbolic shapes, two seconds at first.
        weighted = (update(x_1ND, agg_1ND, weights) * grad_out).sum()
        (gradient,) = torch.autograd.grad(weighted, agg_1ND)
    return gradient[0]


def _per_edge(call: LayerCall, edges: Edges, grad_ND: Tensor) -> Tensor:
    message = ALGEBRAS[call.layer.algebra].message
    parts = []
    with torch.no_grad():
        for start in range(0, edges.num_edges, CHUNK_EDGES):
            node, type_, neighbour = edges.slice(start, min(start + CHUNK_EDGES, edges.num_edges))
            parts.append((grad_ND[node] * message(call.x_ND[neighbour], call.relation_RW[type_])).sum(-1).double())
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64, device=grad_ND.device)
