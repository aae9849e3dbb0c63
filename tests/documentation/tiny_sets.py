"""Benchmark sets by their own names with some 140 facts each, as `gamma datasets fetch` leaves them; ULTRA weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from gamma_kg.data.benchmark import RECORD, file_sha256
from gamma_kg.data.catalog import dataset
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.gamma import Gamma

# Those that pages and configs name.
SETS = (
    "fb15k237 wn18rr codex-m nell-v1 nell-v3 nl-0 nl-50 nl-100 wk-25 mt4-sci fb-100 wn18rr-v1 wn18rr-v2 fb15k237-v1 "
    "fb15k237-v2 codex-s"
).split()
RELATIONS = ("parent of", "child of", "grandparent of")


def write_sets(folder: Path) -> None:
    """Families under one ancestor: relations compose and invert, so that the sets are small worlds of a kind."""
    for seed, slug in enumerate(SETS):
        rng = np.random.default_rng(seed)
        parent = {child: int(rng.integers(child)) for child in range(1, 50)}
        facts = [(p, 0, c) for c, p in parent.items()] + [(c, 1, p) for c, p in parent.items()]
        facts += [(parent[p], 2, c) for c, p in parent.items() if p]
        lines = [f"p{facts[i][0]}\t{RELATIONS[facts[i][1]]}\tp{facts[i][2]}\n" for i in rng.permutation(len(facts))]
        (folder / slug).mkdir(parents=True)
        for name, size in (("test.txt", 4), ("valid.txt", 4), ("inference.txt", 60), ("train.txt", len(facts))):
            if name in dataset(slug).files:
                (folder / slug / name).write_text("".join(lines[:size]))
                lines = lines[size:]
        hashes = {path.name: file_sha256(path) for path in sorted((folder / slug).glob("*.txt"))}
        (folder / slug / RECORD).write_text(json.dumps(hashes))


def write_ultra(path: Path) -> None:
    """A file like ULTRA's own ultra_3g.pth: its names of the weights, few channels."""
    model = Gamma.from_config(GammaConfig(branches=("real",), dim=8, num_layers=2)).model
    theirs = {}
    for name, tensor in model.state_dict().items():
        for ours, ultra in (
            ("relation_encoder.", "relation_model."),
            ("branches.0.layers.", "entity_model.layers."),
            ("score.hidden.", "entity_model.mlp.0."),
            ("score.out.", "entity_model.mlp.2."),
            (".relation.", ".relation_projection."),
            (".norm.", ".layer_norm."),
        ):
            name = name.replace(ours, ultra)
        theirs[name] = tensor
    torch.save({"model": theirs}, path)
