import pytest
import torch

from gamma_kg.kernels.algebra import ALGEBRAS

X = torch.tensor([1.0, 2.0, 3.0, 5.0], dtype=torch.float64)  # as two-component numbers: 1 + 3u, 2 + 5u
R = torch.tensor([7.0, 0.5, -2.0, 4.0], dtype=torch.float64)  # 7 − 2u, 0.5 + 4u
BILINEAR = [name for name, algebra in ALGEBRAS.items() if algebra.bilinear]

# Worked by hand: (1 + 3u)(7 − 2u) = 7 − 6u² + 19u and (2 + 5u)(0.5 + 4u) = 1 + 20u² + 10.5u.
PRODUCTS = {
    "real": [7.0, 1.0, -6.0, 20.0],
    "complex": [13.0, -19.0, 19.0, 10.5],
    "split-complex": [1.0, 21.0, 19.0, 10.5],
    "dual": [7.0, 1.0, 19.0, 10.5],
    "translation": [8.0, 2.5, 1.0, 9.0],
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_worked_by_hand(name: str) -> None:
    assert ALGEBRAS[name].message(X, R).tolist() == PRODUCTS[name]


def test_a_quarter_turn_rotates_one_to_the_unit() -> None:
    x = torch.tensor([1.0, 0.0], dtype=torch.float64)
    quarter = torch.tensor([torch.pi / 2], dtype=torch.float64)
    torch.testing.assert_close(ALGEBRAS["rotation"].message(x, quarter), torch.tensor([0.0, 1.0]).double())
    moved = ALGEBRAS["transrotate"].message(x, torch.tensor([torch.pi / 2, 10.0, 20.0], dtype=torch.float64))
    torch.testing.assert_close(moved, torch.tensor([10.0, 21.0]).double())


def test_mobius_maps_worked_by_hand() -> None:
    x = torch.tensor([2.0, 1.0], dtype=torch.float64)  # 2 + u
    # a = 1, b = 1 + u, c = 0, d = 2: (x + 1 + u) / 2 = 1.5 + u
    affine = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 0.0], dtype=torch.float64)
    # a = 0, b = 1, c = 1, d = 0: 1 / x
    inversion = torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    close = {"rtol": 1e-5, "atol": 1e-5}
    for name in ("mobius", "splitmobius"):
        torch.testing.assert_close(ALGEBRAS[name].message(x, affine), torch.tensor([1.5, 1.0]).double(), **close)
    torch.testing.assert_close(ALGEBRAS["mobius"].message(x, inversion), torch.tensor([0.4, -0.2]).double(), **close)
    expected = torch.tensor([2 / 3, -1 / 3]).double()
    torch.testing.assert_close(ALGEBRAS["splitmobius"].message(x, inversion), expected, **close)
    plus = ALGEBRAS["mobius+"].message(x, affine)
    torch.testing.assert_close(plus, x + ALGEBRAS["mobius"].message(x, affine))


def test_a_zero_divisor_gives_a_finite_mobius_message() -> None:
    x = torch.tensor([1.0, 1.0])  # (1 + j)(1 − j) = 0
    inversion = torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert ALGEBRAS["splitmobius"].message(x, inversion).isfinite().all()


@pytest.mark.parametrize("name", ALGEBRAS)
def test_gradients_are_exact(name: str) -> None:
    generator = torch.Generator().manual_seed(5)
    width = int(ALGEBRAS[name].relation_width * 6)
    x = torch.randn(3, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    r = torch.randn(3, width, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(ALGEBRAS[name].message, (x, r))


@pytest.mark.parametrize("name", BILINEAR)
def test_the_message_of_a_sum_is_the_sum_of_messages(name: str) -> None:
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(50, 6, dtype=torch.float64, generator=generator)
    r, s = torch.randn(2, 6, dtype=torch.float64, generator=generator)
    message = ALGEBRAS[name].message
    torch.testing.assert_close(message(x, r.expand(50, -1)).sum(0), message(x.sum(0), r))
    torch.testing.assert_close(message(x[0], 2 * r - s), 2 * message(x[0], r) - message(x[0], s))


def test_four_message_functions_are_bilinear() -> None:
    assert BILINEAR == ["real", "complex", "split-complex", "dual"]


@pytest.mark.parametrize("name", BILINEAR)
def test_the_four_products_commute(name: str) -> None:
    message = ALGEBRAS[name].message
    torch.testing.assert_close(message(X, R), message(R, X), rtol=0, atol=0)


def test_split_complex_is_the_real_product_in_another_basis() -> None:
    def to_other_basis(x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2)
        return torch.cat((first + second, first - second))

    product = ALGEBRAS["split-complex"].message(X, R)
    torch.testing.assert_close(
        to_other_basis(product), ALGEBRAS["real"].message(to_other_basis(X), to_other_basis(R)), rtol=0, atol=1e-12
    )
    # The complex product is not: the same change of basis does not turn it into the real one.
    other = ALGEBRAS["complex"].message(X, R)
    assert not torch.allclose(to_other_basis(other), ALGEBRAS["real"].message(to_other_basis(X), to_other_basis(R)))
