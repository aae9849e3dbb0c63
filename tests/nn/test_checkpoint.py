import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gamma_kg import CheckpointError, Gamma, KnowledgeGraph
from gamma_kg.nn.checkpoint import FORMAT, Checkpoint, import_ultra, load_checkpoint
from gamma_kg.nn.config import GammaConfig


@pytest.fixture
def saved(tmp_path: Path, small_gamma: Gamma) -> Path:
    path = tmp_path / "model.safetensors"
    small_gamma.save(path)
    return path


def test_a_round_trip_keeps_weights_config_and_provenance(saved: Path, small_gamma: Gamma) -> None:
    loaded = Gamma.from_pretrained(saved)
    assert loaded.config == small_gamma.config
    assert loaded.provenance == small_gamma.provenance == {"origin": "untrained, seed 3"}
    for name, tensor in small_gamma.model.state_dict().items():
        assert loaded.model.state_dict()[name].equal(tensor), name


def test_saving_leaves_no_other_file_behind(saved: Path) -> None:
    assert [p.name for p in saved.parent.iterdir()] == ["model.safetensors"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, small_gamma: Gamma) -> None:
    (tmp_path / "nowhere").write_text("a file")
    with pytest.raises(CheckpointError, match=r"can't write .*nowhere"):
        small_gamma.save(tmp_path / "nowhere" / "model.safetensors")


@pytest.mark.parametrize("length", [0, 4, 100, 5000])
def test_a_truncated_file_is_refused(saved: Path, length: int) -> None:
    saved.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(CheckpointError, match=r"damaged, cut short or not a .safetensors"):
        load_checkpoint(saved)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no checkpoint at .*none.safetensors"):
        load_checkpoint(tmp_path / "none.safetensors")


def test_other_safetensors_are_refused(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError, match="of another kind"):
        load_checkpoint(tmp_path / "other.safetensors")


def test_a_pytorch_file_is_refused_with_the_command_to_convert_it(tmp_path: Path) -> None:
    torch.save({"model": {}}, tmp_path / "ultra.pth")
    with pytest.raises(CheckpointError, match="gamma convert"):
        load_checkpoint(tmp_path / "ultra.pth")


def rewrite(path: Path, config: dict[str, object], drop: str = "", reshape: str = "") -> None:
    weights = load_file(path)
    weights.pop(drop, None)
    if reshape:
        weights[reshape] = torch.zeros(3)
    save_file(weights, path, metadata={"format": FORMAT, "config": json.dumps(config)})


def test_a_config_of_another_version_is_refused(saved: Path) -> None:
    rewrite(saved, {"colour": "red"})
    with pytest.raises(CheckpointError, match="no option 'colour'"):
        load_checkpoint(saved)


@pytest.mark.parametrize(("change", "complaint"), [("drop", "missing"), ("reshape", "should have shape")])
def test_weights_that_do_not_fit_the_config_are_refused(
    saved: Path, small_gamma: Gamma, change: str, complaint: str
) -> None:
    rewrite(saved, small_gamma.config.model_dump(mode="json"), **{change: "score.hidden.bias"})
    with pytest.raises(CheckpointError, match=complaint):
        Gamma.from_pretrained(saved)


class Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("code in a checkpoint was executed",))


def test_importing_executes_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model": Harmful()}, tmp_path / "harmful.pth")
    with pytest.raises(CheckpointError, match="not a PyTorch checkpoint with plain weights"):
        import_ultra(tmp_path / "harmful.pth")
    assert "executed" not in capsys.readouterr().out


def test_a_checkpoint_without_an_ultra_model_is_refused(tmp_path: Path) -> None:
    torch.save({"model": {"a.weight": torch.zeros(2)}}, tmp_path / "other.pth")
    with pytest.raises(CheckpointError, match="holds no ULTRA model"):
        import_ultra(tmp_path / "other.pth")


def test_a_model_of_meetings_goes_on_with_pairs_from_the_same_scores(saved: Path, family: KnowledgeGraph) -> None:
    checkpoint = load_checkpoint(saved)
    before, after = Gamma.from_checkpoint(checkpoint), Gamma.from_checkpoint(checkpoint.with_pairs())
    assert after.config.relation_graph == "pairs"
    assert after.num_parameters > before.num_parameters
    source, relation = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2])
    assert after.scores(family, source, relation).equal(before.scores(family, source, relation))
    # The new types do count once they are learnt.
    for layer in after.model.relation_encoder.layers:
        torch.nn.init.ones_(layer.relation.weight)
    for layer in before.model.relation_encoder.layers:
        torch.nn.init.ones_(layer.relation.weight)
    assert not after.scores(family, source, relation).allclose(before.scores(family, source, relation))


@pytest.mark.parametrize(
    "absurd",
    [{"dim": 10**8}, {"dim": 10**17}, {"num_layers": 10**9}, {"mlp_hidden": 10**12}, {"attention_dim": 10**14}],
)
def test_an_absurd_config_is_refused_before_memory_is_taken(saved: Path, absurd: dict[str, int]) -> None:
    import resource

    found = load_checkpoint(saved)
    changed = Checkpoint(found.config.with_options(**absurd), found.weights)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match="this checkpoint"):
        changed.build()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_an_empty_pytorch_file_is_one_error(tmp_path: Path) -> None:
    """What torch raises for it has no words."""
    (tmp_path / "u.pth").write_bytes(b"")
    with pytest.raises(CheckpointError, match="not a PyTorch checkpoint with plain weights: EOFError"):
        import_ultra(tmp_path / "u.pth")


@pytest.mark.parametrize("prefix", ["", "model.model."])
def test_public_weights_are_imported_also_where_they_are_wrapped_for_queries(tmp_path: Path, prefix: str) -> None:
    """ultraquery.pth holds an ULTRA under a prefix; what it was trained for decides how it takes its steps."""
    ours = Gamma.from_config(GammaConfig(branches=("real",), dim=8, num_layers=2)).model.state_dict()
    theirs = {
        "relation_encoder.": "relation_model.", "branches.0.layers.": "entity_model.layers.", ".norm.": ".layer_norm.",
        "score.hidden.": "entity_model.mlp.0.", "score.out.": "entity_model.mlp.2.",
    }  # fmt: skip
    weights = {}
    for name, tensor in ours.items():
        for own, public in theirs.items():
            name = name.replace(own, public)
        if name.startswith("entity_model."):
            name = name.replace(".relation.", ".relation_projection.")
        weights[prefix + name] = tensor
    torch.save({"model": weights}, tmp_path / "public.pth")
    found = import_ultra(tmp_path / "public.pth")
    assert found.weights.keys() == ours.keys()
    assert all(torch.equal(found.weights[name], tensor) for name, tensor in ours.items())
    assert found.provenance.get("trained_for") == ("queries" if prefix else None)
