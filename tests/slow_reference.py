"""Fusion, losses and objective a second time, slowly: loops over single numbers, written from docs/model.md §6 and §8.

Nothing here calls the code that it checks; torch tensors come in as nested lists of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]
Matrix = Sequence[Vector]


def times(matrix: Matrix, vector: Vector) -> list[float]:
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def cosine(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


def softmax(values: Vector) -> list[float]:
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def branch_weights(
    states: Matrix, query: Vector, keys: Sequence[Matrix], context_map: Matrix, kappa: float, mix: float
) -> list[float]:
    """α~_k = (1 − λ) softmax_k(cos(W_key^k [z_k ; q], W_ctx q) / κ) + λ / K at one entity; states are z_1 .. z_K."""
    context = times(context_map, query)
    cosines = [cosine(times(key, [*z, *query]), context) for key, z in zip(keys, states, strict=True)]
    return [(1 - mix) * alpha + mix / len(states) for alpha in softmax([value / kappa for value in cosines])]


def score(
    states: Matrix, query: Vector, weights: Vector, hidden: Matrix, bias: Vector, out: Vector, end: float
) -> float:
    """MLP(concat_k(α~_k [z_k ; q])) at one entity."""
    features = [weight * value for weight, z in zip(weights, states, strict=True) for value in (*z, *query)]
    layer = [max(0.0, value + b) for value, b in zip(times(hidden, features), bias, strict=True)]
    return sum(o * value for o, value in zip(out, layer, strict=True)) + end


def entropy(weights: Vector) -> float:
    return -sum(weight * math.log(weight) for weight in weights if weight > 0)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def bce(scores: Vector, right: Sequence[bool], wrong: Sequence[bool], tau: float) -> float:
    """One query: mean cost of the right answers, cost of the wrong ones weighed by softmax(score / τ); their mean."""
    rivals = [s for s, is_wrong in zip(scores, wrong, strict=True) if is_wrong]
    adversarial = softmax([s / tau for s in rivals]) if rivals else []
    right_cost = mean(
        [-math.log(1 / (1 + math.exp(-s))) for s, is_right in zip(scores, right, strict=True) if is_right]
    )
    wrong_cost = sum(w * -math.log(1 - 1 / (1 + math.exp(-s))) for w, s in zip(adversarial, rivals, strict=True))
    return (right_cost + wrong_cost) / 2


def cross_entropy(scores: Vector, right: Sequence[bool], wrong: Sequence[bool]) -> float:
    """One query: each right answer against all wrong ones."""
    rivals = sum(math.exp(s) for s, is_wrong in zip(scores, wrong, strict=True) if is_wrong)
    return mean([-math.log(math.exp(s) / (math.exp(s) + rivals)) for s, r in zip(scores, right, strict=True) if r])


def divergence(scores: Vector, taught: Vector, counted: Sequence[bool]) -> float:
    """Kullback-Leibler divergence of the shares among the candidates that count."""
    own, wanted = (softmax([value for value, use in zip(row, counted, strict=True) if use]) for row in (scores, taught))
    return sum(q * math.log(q / p) for p, q in zip(own, wanted, strict=True))


def objective(losses: Vector, entropies: Vector, beta: float) -> float:
    """loss = prediction − β · entropy: both means over the queries."""
    return mean(losses) - beta * mean(entropies)
