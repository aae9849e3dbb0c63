"""Message functions f_r(x), one row each: what an edge with relation vector r makes of the state x (docs/model.md §5).

Two-component algebras split the D channels in halves: x = x_re + i·x_im with a unit i, i² = σ. With σ = −1, +1, 0 the
one product below is that of complex, split-complex and dual numbers. `real` and these three are bilinear: a sum of
messages with the same relation is the message of the sum, and the message of zero is zero, which saves work. The native
engine knows these four; any other row is computed by plain torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

# Keeps the inverse of a number whose norm is near zero finite: N / (N² + EPSILON) in place of 1 / N.
EPSILON = 1e-6


@dataclass(frozen=True)
class Algebra:
    """One message function. `relation_width` is the length of r in units of D (the channels of x)."""

    name: str
    message: Callable[[Tensor, Tensor], Tensor]
    relation_width: Fraction = Fraction(1)
    components: int = 2  # x consists of so many equal parts, so D must be a multiple of it
    bilinear: bool = False  # linear in x and in r: all that the engine builds on


def product(x: Tensor, y: Tensor, sigma: int) -> Tensor:
    """Product of two-component numbers whose unit squares to `sigma`; halves along the last axis."""
    x_re, x_im = x.chunk(2, dim=-1)
    y_re, y_im = y.chunk(2, dim=-1)
    return torch.cat((x_re * y_re + sigma * (x_im * y_im), x_re * y_im + x_im * y_re), dim=-1)


def quotient(x: Tensor, y: Tensor, sigma: int) -> Tensor:
    """x / y as x · conj(y) / norm(y); finite for every y, also for zero divisors."""
    y_re, y_im = y.chunk(2, dim=-1)
    norm = y_re * y_re - sigma * (y_im * y_im)
    inverse_norm = norm / (norm * norm + EPSILON)
    return product(x, torch.cat((y_re * inverse_norm, -y_im * inverse_norm), dim=-1), sigma)


def rotation(x: Tensor, angle: Tensor) -> Tensor:
    """Each complex channel turned by its angle; `angle` has half the channels of x."""
    return product(x, torch.cat((angle.cos(), angle.sin()), dim=-1), -1)


def transrotate(x: Tensor, r: Tensor) -> Tensor:
    """A rotation, then a translation: the first third of r are angles, the rest is the offset."""
    half = x.shape[-1] // 2
    return rotation(x, r[..., :half]) + r[..., half:]


def mobius(x: Tensor, r: Tensor, sigma: int) -> Tensor:
    """(a x + b) / (c x + d) with the four coefficients side by side in r."""
    a, b, c, d = r.chunk(4, dim=-1)
    return quotient(product(a, x, sigma) + b, product(c, x, sigma) + d, sigma)


ALGEBRAS = {
    algebra.name: algebra
    for algebra in (
        Algebra("real", torch.mul, components=1, bilinear=True),
        Algebra("complex", lambda x, r: product(x, r, -1), bilinear=True),
        Algebra("split-complex", lambda x, r: product(x, r, +1), bilinear=True),
        Algebra("dual", lambda x, r: product(x, r, 0), bilinear=True),
        Algebra("translation", torch.add, components=1),
        Algebra("rotation", rotation, relation_width=Fraction(1, 2)),
        Algebra("transrotate", transrotate, relation_width=Fraction(3, 2)),
        Algebra("mobius", lambda x, r: mobius(x, r, -1), relation_width=Fraction(4)),
        Algebra("splitmobius", lambda x, r: mobius(x, r, +1), relation_width=Fraction(4)),
        # The paper names this one without a formula; here it is the Möbius map added to its input.
        Algebra("mobius+", lambda x, r: x + mobius(x, r, -1), relation_width=Fraction(4)),
    )
}
