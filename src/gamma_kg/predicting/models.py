"""A model by name: a checkpoint file, the bundled weights, or a baseline. Each has a hash that tells it from others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gamma_kg.errors import CheckpointError, did_you_mean
from gamma_kg.machine.device import choose_device
from gamma_kg.nn.config import PRESETS
from gamma_kg.nn.provenance import graphs_behind, origin_of
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.predicting.weights import bundled, load_one

BASELINES = ("untrained", "ppr", "frequency")
UNTRAINED_SEED = 0


@dataclass(frozen=True)
class NamedModel:
    """A predictor, what to call it, and a hash of all that decides its scores."""

    name: str
    hash: str
    predictor: Predictor
    description: str
    trained_on: tuple[str, ...] = ()
    """Training graphs, those of the weights it began from among them; adapting and fine-tuning count."""
    learnt_target: str | None = None
    """The graph it was adapted or fine-tuned to, on which it is not zero-shot."""


def resolve_model(name: str | Path | None, device: str = "cpu") -> NamedModel:
    """None: the bundled weights. "untrained" (or "untrained:PRESET"), "ppr", "frequency", else a checkpoint.

    Several checkpoints with + between them are an ensemble. Baselines compute on the CPU, whatever the device.
    """
    there = choose_device(device)  # one that is not here is told before anything is loaded
    named = _named(name)
    if isinstance(named.predictor, Gamma):
        named.predictor.to(there)
    return named


def _named(name: str | Path | None) -> NamedModel:
    text = "" if name is None else str(name)
    if text in ("ppr", "frequency"):
        return _baseline(text)
    if text == "untrained" or text.startswith("untrained:"):
        preset = text.partition(":")[2] or "gamma"
        return _of_gamma(text, Gamma.from_preset(preset, seed=UNTRAINED_SEED))
    if text in ("", "bundled"):
        return _of_gamma("bundled", Gamma.from_pretrained())
    if "+" in text and all(Path(part).is_file() for part in text.split("+")):
        return _of_gamma("ensemble", Gamma.from_checkpoints([load_one(part) for part in text.split("+")]))
    if text not in bundled() and not Path(text).is_file():
        hint = did_you_mean(text, [*BASELINES, *bundled(), *(f"untrained:{preset}" for preset in PRESETS)])
        raise CheckpointError(
            f"no model {text!r}: wanted a .safetensors checkpoint, a public ULTRA .pth file, "
            f"or one of {', '.join((*bundled(), *BASELINES))}{hint}"
        )
    return _of_gamma(text if text in bundled() else Path(text).stem, Gamma.from_pretrained(text))


def _baseline(name: str) -> NamedModel:
    from gamma_kg.predicting.baselines import frequency_baseline, pagerank_baseline  # scipy is slow to load

    if name == "ppr":
        return _of(name, pagerank_baseline(), "personalised PageRank, restart 0.15")
    return _of(name, frequency_baseline(), "most frequent answers")


def _of(name: str, predictor: Predictor, description: str) -> NamedModel:
    return NamedModel(name, predictor.fingerprint(), predictor, description)


def _of_gamma(name: str, gamma: Gamma) -> NamedModel:
    facts = [f"{' & '.join(gamma.config.branches)}, {gamma.num_parameters:,} parameters", *_origin(gamma.provenance)]
    target = gamma.provenance.get("finetuned_on") or gamma.provenance.get("adapted", {}).get("graph")
    return NamedModel(
        name, gamma.fingerprint(), gamma, "; ".join(facts), tuple(graphs_behind(gamma.provenance)), target
    )


def _origin(provenance: Mapping[str, Any]) -> Iterator[str]:
    """How the weights came to be. A checkpoint that was chosen on validation sets must say so in every table."""
    if origin := origin_of(provenance):
        yield origin
    if "step" in provenance:
        yield f"{provenance.get('weights', 'weights')} of step {provenance['step']:,}"
    if "selection" in provenance:
        chosen = provenance["selection"]
        among = chosen.get("among", "?")
        # Older headers list the candidates with their figures.
        count = among if isinstance(among, int | str) else len(among)
        yield f"chosen of {count} checkpoints by {chosen.get('rule', 'validation')}"
