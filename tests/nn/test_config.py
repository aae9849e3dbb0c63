import pytest
from pydantic import ValidationError

from gamma_kg import ConfigError, Gamma, GammaConfig
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.nn.config import PRESETS, preset

# docs/model.md §6: counted in the published models.
FINGERPRINT = {"ultra": 168_705, "gamma": 359_298, "ultra-att": 359_298, "ultra-cap": 360_395}


@pytest.mark.parametrize("name", FINGERPRINT)
def test_parameter_counts_equal_the_published_fingerprint(name: str) -> None:
    assert Gamma.from_preset(name).num_parameters == FINGERPRINT[name]


def test_the_papers_rows_are_all_there() -> None:
    pairs = {frozenset(c.branches) for c in PRESETS.values() if c.num_branches == 2 and len(set(c.branches)) == 2}
    four = ("real", "complex", "split-complex", "dual")
    assert {c.branches[0] for c in PRESETS.values() if c.num_branches == 1} == set(four)
    assert pairs == {frozenset((a, b)) for a in four for b in four if a != b}
    assert {c.attention for c in PRESETS.values()} == {"full", "no-query", "no-key", "none"}
    assert {c.combine for c in PRESETS.values()} == {"concat", "sum"}
    assert {c.position for c in PRESETS.values()} == {"late", "early"}


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="GammaConfig has no option 'num_layer'; did you mean 'num_layers'"):
        GammaConfig.parse({"num_layer": 3})
    with pytest.raises(ConfigError, match="no preset 'gama'; did you mean 'gamma'"):
        preset("gama")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"branches": ["complx"]}, "no message function 'complx'; did you mean 'complex'"),
        ({"branches": []}, "at least one message function"),
        ({"branches": ["dual"], "dim": 7}, "dim must be a multiple of 2"),
        ({"num_layers": 0}, r"num_layers.*greater than or equal to 1 \(got 0\)"),
        ({"attention": "none", "position": "early"}, "early fusion"),
    ],
)
def test_values_that_make_no_model_are_refused(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        GammaConfig.parse(options)


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        GammaConfig().dim = 3  # type: ignore[misc]
    assert GammaConfig().with_options(dim=32).dim == 32


@pytest.mark.parametrize("name", ALGEBRAS)
def test_every_message_function_is_a_config(name: str) -> None:
    gamma = Gamma.from_config(GammaConfig(branches=(name,), dim=8, num_layers=2))
    width = gamma.model.branches[0].layers[0].relation[2].weight.shape[0]  # type: ignore[index, union-attr]
    assert width == 8 * ALGEBRAS[name].relation_width
