from pathlib import Path

import pytest
import torch

from gamma_kg import CheckpointError, Gamma, KnowledgeGraph
from gamma_kg.errors import ConfigError
from gamma_kg.nn.checkpoint import load_checkpoint
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.models import resolve_model

SMALL = GammaConfig(dim=8, num_layers=2, attention_dim=8)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two unlike models; the second knows pairs."""
    options = (SMALL, SMALL.with_options(dim=16, relation_graph="pairs"))
    paths = [tmp_path / f"{number}.safetensors" for number in range(2)]
    for number, (config, path) in enumerate(zip(options, paths, strict=True)):
        Gamma.from_config(config, seed=number).save(path)
    return paths


def test_an_ensemble_scores_with_the_mean_of_its_models(files: list[Path], family: KnowledgeGraph) -> None:
    named = resolve_model("+".join(map(str, files)))
    query = torch.tensor([0, 1, 0]), torch.tensor([0, 1, 2])
    alone = [Gamma.from_pretrained(path).scores(family, *query) for path in files]
    together = named.predictor.scores(family, *query)
    assert torch.allclose(together, (alone[0] + alone[1]) / 2, atol=1e-5)
    near = [Gamma.from_pretrained(path).scores(family, *query, local=4) for path in files]
    assert torch.allclose(named.predictor.scores(family, *query, local=4), (near[0] + near[1]) / 2, atol=1e-5)
    assert not torch.allclose(near[0], alone[0], atol=1e-3)
    assert isinstance(named.predictor, Gamma)
    with pytest.raises(CheckpointError, match="no single file"):
        named.predictor.save(files[0].parent / "both.safetensors")


def test_shares_say_how_much_each_model_counts(files: list[Path], family: KnowledgeGraph) -> None:
    query = torch.tensor([0, 1, 0]), torch.tensor([0, 1, 2])
    first, second = (Gamma.from_pretrained(path).scores(family, *query) for path in files)
    checkpoints = [load_checkpoint(path) for path in files]
    both = Gamma.from_checkpoints(checkpoints, [3, 1])
    assert torch.allclose(both.scores(family, *query), 0.75 * first + 0.25 * second, atol=1e-5)
    assert both.fingerprint() != Gamma.from_checkpoints(checkpoints, [1, 1]).fingerprint()
    for shares in ([1], [1, 0], [1, -1]):
        with pytest.raises(ConfigError, match="a share above 0 for each of 2 models"):
            Gamma.from_checkpoints(checkpoints, shares)
