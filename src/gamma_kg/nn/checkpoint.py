"""Checkpoints: weights, config, version and provenance in one .safetensors file. Loading never executes code."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from gamma_kg.errors import CheckpointError, ConfigError
from gamma_kg.graph.relation_pairs import KINDS
from gamma_kg.io.atomic import write_whole
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.model import GammaModel

FORMAT = "gamma-kg/1"
# UltraQuery, the public weights for logical queries, wraps ULTRA.
ULTRAQUERY_PREFIX = "model.model."


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds. `provenance` says how the weights came to be: run, data, commit."""

    config: GammaConfig
    weights: Mapping[str, Tensor]
    provenance: dict[str, Any] = field(default_factory=dict)
    version: str = ""

    def with_pairs(self) -> Checkpoint:
        """The same model with `relation_graph = "pairs"`: the new edge types begin at zero, so every score stays."""
        if self.config.relation_graph == "pairs":
            return self
        config = self.config.with_options(relation_graph="pairs")
        weights = {
            name: _longer(tensor, config) if _is_type_table(name) else tensor for name, tensor in self.weights.items()
        }
        return Checkpoint(config, weights, self.provenance, self.version)

    def build(self) -> GammaModel:
        """The model with these weights, ready to predict."""
        refuse_misfit(self.config, self.weights, "this checkpoint")
        model = GammaModel(self.config)
        load_weights(model, self.weights, "this checkpoint")
        return model.eval()


def _is_type_table(name: str) -> bool:
    return name.startswith("relation_encoder.") and name.endswith(".relation.weight")


def _longer(table: Tensor, config: GammaConfig) -> Tensor:
    """A table of edge types with zero rows for the types that the config has more."""
    more = len(KINDS[config.relation_graph][0]) - len(table)
    return torch.cat((table, table.new_zeros(more, table.shape[1])))


def refuse_misfit(config: GammaConfig, weights: Mapping[str, Tensor], where: str) -> None:
    """A config that asks for more than the file holds, seen before memory is taken: a small file may ask for any."""
    relation_layers = config.num_relation_encoders * (config.relation_layers or config.num_layers)
    layers = config.num_layers * config.num_branches + relation_layers
    wanted = layers * config.dim**2 + (config.mlp_hidden or config.dim) * config.dim
    if config.num_branches > 1 and config.attention != "none":
        wanted += config.attention_dim * config.dim
    # What lies in memory, not what a tensor claims: one number can be stretched to any shape.
    storages = {tensor.untyped_storage().data_ptr(): tensor for tensor in weights.values()}
    held = sum(tensor.untyped_storage().nbytes() // tensor.element_size() for tensor in storages.values())
    if wanted > held or layers > len(weights):
        raise CheckpointError(
            f"{where}: its config asks for {layers:,} layers and more than {wanted:,} numbers, "
            f"but it holds {len(weights):,} weights with {held:,}"
        )


def load_weights(model: GammaModel, weights: Mapping[str, Tensor], where: str) -> None:
    """Put weights into a model; names and shapes must be exactly those of the model."""
    expected = model.state_dict()
    missing, extra = expected.keys() - weights.keys(), weights.keys() - expected.keys()
    if missing or extra:
        listed = ", ".join(sorted(missing or extra)[:3])
        raise CheckpointError(f"{where}: weights {'missing' if missing else 'not known'} for its config: {listed}")
    for name, tensor in expected.items():
        if tensor.shape != weights[name].shape:
            raise CheckpointError(
                f"{where}: {name} should have shape {tuple(tensor.shape)}, found {tuple(weights[name].shape)}"
            )
    model.load_state_dict(dict(weights))


def save_checkpoint(path: str | Path, model: GammaModel, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a model and how it came to be; the file appears whole or not at all."""
    path = Path(path)
    metadata = {
        "format": FORMAT,
        "version": version("gamma-kg"),
        "config": model.config.model_dump_json(),
        "provenance": json.dumps(dict(provenance or {})),
    }
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    try:
        write_whole(path, lambda file: save_file(weights, file, metadata=metadata), error=CheckpointError)
    except SafetensorError as error:
        raise CheckpointError(f"can't write {path}: {error}") from error


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint; a damaged file or one of another kind is a `CheckpointError`."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {path}: give a .safetensors file that gamma wrote")
    if zipfile.is_zipfile(path):
        raise CheckpointError(
            f"{path} is a PyTorch file, not a .safetensors checkpoint; "
            f"for public ULTRA weights run: gamma convert {path} {path.with_suffix('.safetensors').name}"
        )
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged, cut short or not a .safetensors file ({error})") from None
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "no format")
        raise CheckpointError(
            f"{path} is a .safetensors file of another kind: wanted format {FORMAT!r}, found {found!r}"
        )
    try:
        config = GammaConfig.parse(json.loads(metadata["config"]), where=str(path))
        provenance = json.loads(metadata.get("provenance", "{}"))
    except (KeyError, ValueError, RecursionError, ConfigError) as error:
        raise CheckpointError(f"{path} has a config that this version can't read: {error}") from None
    return Checkpoint(config, weights, provenance, metadata.get("version", ""))


def import_ultra(path: str | Path) -> Checkpoint:
    """Weights of a public ULTRA checkpoint (.pth). Only tensors are read: nothing in the file is executed."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no ULTRA checkpoint at {path}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises many kinds, all of them mean: this file is not what it should be
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} is not a PyTorch checkpoint with plain weights: {told}") from None
    state = content.get("model", content) if isinstance(content, dict) else {}
    weights = {_ultra_name(name): tensor for name, tensor in state.items() if isinstance(tensor, Tensor)}
    first = weights.get("relation_encoder.layers.0.linear.weight")
    hidden = weights.get("score.hidden.weight")
    if first is None or hidden is None:
        raise CheckpointError(
            f"{path} holds no ULTRA model: no relation_model.layers.0.linear.weight or entity_model.mlp.0.weight"
        )
    layers = {name.split(".")[2] for name in weights if name.startswith("relation_encoder.layers.")}
    dim = first.shape[0]
    config = GammaConfig(
        branches=("real",),
        dim=dim,
        num_layers=len(layers),
        mlp_hidden=None if hidden.shape[0] == hidden.shape[1] else hidden.shape[0],
    )
    origin = {"origin": f"imported from the ULTRA checkpoint {path.name}"}
    if any(name.startswith(ULTRAQUERY_PREFIX) for name in state):
        origin["trained_for"] = "queries"
    checkpoint = Checkpoint(config, weights, origin)
    refuse_misfit(config, weights, str(path))
    load_weights(GammaModel(config), weights, str(path))
    return checkpoint


def _ultra_name(name: str) -> str:
    """ULTRA's name of a weight → ours."""
    for theirs, ours in (
        (ULTRAQUERY_PREFIX, ""),
        ("relation_model.", "relation_encoder."),
        ("entity_model.layers.", "branches.0.layers."),
        ("entity_model.mlp.0.", "score.hidden."),
        ("entity_model.mlp.2.", "score.out."),
        (".relation_projection.", ".relation."),
        (".layer_norm.", ".norm."),
    ):
        name = name.replace(theirs, ours)
    return name
