"""The weights that ship: each name loads, says what it was trained on, and is small."""

from importlib.resources import files

import pytest

from gamma_kg import CheckpointError, Gamma
from gamma_kg.data.catalog import PRETRAINING
from gamma_kg.predicting.models import resolve_model
from gamma_kg.predicting.weights import bundled, load_one


@pytest.mark.parametrize("name", list(bundled()))
def test_every_bundled_name_loads_and_knows_its_training_graphs(name: str) -> None:
    named = resolve_model(name)
    assert isinstance(named.predictor, Gamma)
    assert set(PRETRAINING) <= set(named.trained_on)
    for file in bundled()[name].files:
        assert (files("gamma_kg") / "weights" / file).stat().st_size < 10_000_000  # type: ignore[attr-defined]


def test_the_first_name_is_the_default() -> None:
    default = next(iter(bundled()))
    assert Gamma.from_pretrained().fingerprint() == Gamma.from_pretrained(default).fingerprint()


def test_a_name_that_nobody_knows_is_helped() -> None:
    with pytest.raises(CheckpointError, match="did you mean 'gamma-1'"):
        Gamma.from_pretrained("gamma-11")


def test_an_ensemble_is_no_start_for_training() -> None:
    with pytest.raises(CheckpointError, match="ensemble of 2 models"):
        load_one("ensemble")
