"""TrainConfig: one training run as data. The defaults are the published pre-training (docs/model.md §8)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from gamma_kg.errors import ConfigError, did_you_mean
from gamma_kg.graph.sampling import SubgraphOptions
from gamma_kg.io.frozen import FrozenConfig
from gamma_kg.nn.config import GammaConfig, preset


class Phase(FrozenConfig):
    """A part of the run: which graphs are drawn, how large, and what a batch of them holds."""

    share: float = Field(1.0, gt=0)
    """Length of this phase beside the others; shares need not add up to 1."""
    sampler: Literal["full", "subgraph"] = "full"
    """Whole training graphs, or connected subgraphs of them."""
    batch_size: int = Field(64, ge=1)
    """Queries of a batch in one process; half ask for tails, half for heads."""
    batches_per_draw: int = Field(1, ge=1)
    """Batches taken from a graph before the next is drawn."""
    negatives: int | Literal["all"] = 128
    """Wrong answers per query, or all entities that are not known to be right."""
    max_answers: int = Field(1, ge=1)
    """Up to so many answers of a query are taken out of the graph together and count as right."""
    graph_weights: tuple[float, ...] | None = None
    """How often each training graph is drawn; in proportion to their triples when None."""
    walk_chance: float = Field(0.0, ge=0, le=1)
    """Share of the subgraphs that grow as the neighbourhoods of local answers do, around the entities asked about."""
    walk_triples: tuple[int, int] = (2000, 20_000)
    """Bounds of the facts of such a neighbourhood; drawn log-uniformly."""
    whole_chance: float = Field(0.0, ge=0, le=1)
    """Share of the draws that take the whole of a training graph with at most `whole_triples` facts, not a subgraph."""
    whole_triples: int = Field(300_000, ge=1)
    whole_relations: bool = False
    """The relations of a walk's neighbourhood are seen by the graph of relations of the whole, as local answers do."""
    near: int | None = Field(None, ge=2)
    """Only facts are asked for whose ends other facts link by at most so many steps; any fact when None."""
    entities: tuple[int, int] = (300, 2000)
    """Bounds of a subgraph's size; drawn log-uniformly."""
    max_triples: int = Field(20_000, ge=1)
    """A subgraph with more is thinned out at random."""
    seeds: tuple[int, int] = (1, 5)
    """Bounds of the number of random entities a subgraph grows from."""
    neighbours: tuple[int, int] = (5, 40)
    """Bounds of the neighbours followed per entity."""
    drop_chance: float = Field(0.5, ge=0, le=1)
    """Share of the draws that lose random triples."""
    min_kept: float = Field(0.3, gt=0, le=1)
    """Those draws keep a share between this and 1."""
    relation_drop_chance: float = Field(0.0, ge=0, le=1)
    """Share of the draws that lose whole relations."""
    min_relations_kept: float = Field(0.5, gt=0, le=1)
    """Those draws keep a share of their relations between this and 1."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("entities", "walk_triples", "seeds", "neighbours"):
            low, high = getattr(self, name)
            if not 1 <= low <= high:
                raise ValueError(f"{name}: bounds must be 1 or more and in order, got {low}, {high}")
        if isinstance(self.negatives, int) and self.negatives < 1:
            raise ValueError(f"negatives: wanted 1 or more, or 'all', got {self.negatives}")
        return self

    @property
    def subgraph(self) -> SubgraphOptions:
        fields = SubgraphOptions.__dataclass_fields__
        return SubgraphOptions(**{name: getattr(self, name) for name in fields})


class TrainConfig(FrozenConfig):
    """A run: model, data, budget, loss, optimiser, what is watched and what is kept."""

    model: str = "gamma"
    """A preset, see `gamma_kg.nn.config.PRESETS`."""
    model_options: dict[str, Any] = Field(default_factory=dict)
    """Options of `GammaConfig` that differ from the preset."""
    init: str | tuple[str, ...] | None = None
    """Weights to start from: a name such as gamma-1, or a checkpoint; random ones when None. Several are joined: their
    branches stand side by side in one model, each with its own relation encoder."""
    frozen: tuple[str, ...] = ()
    """Parts of the model that keep their weights, by how their names begin (`branches`, `relation_encoder.2`)."""
    graphs: tuple[str, ...] = ("fb15k237", "wn18rr", "codex-m")
    """Graphs to train on: names of the catalogue (their train triples), or paths to files of triples."""
    phases: tuple[Phase, ...] = (Phase(),)
    steps: int | None = Field(200_000, ge=1)
    """Budget in optimiser steps; with `minutes` whichever is reached first."""
    minutes: float | None = Field(None, gt=0)
    """Budget in minutes by the clock; phases and the learning rate then follow the clock."""

    loss: Literal["bce", "softmax"] = "bce"
    """Binary cross-entropy with self-adversarial weights, or a softmax of each answer against the wrong ones."""
    adversarial_temperature: float = Field(1.0, ge=0)
    """τ of the weights of wrong answers in "bce"; 0 weighs them equally."""
    teachers: tuple[str, ...] = ()
    """Weights that are imitated: names such as gamma-1, or checkpoints. None when empty."""
    whole_teachers: tuple[str, ...] = ()
    """Those of the teachers that see the whole training graph where the model sees a neighbourhood of it
    (`whole_relations`)."""
    teacher_mix: Literal["mean", "likely"] = "mean"
    """What is imitated of several: their mean score, or, query by query, each in proportion to the share that it gives
    the right answers."""
    teacher_share: float = Field(0.5, ge=0, le=1)
    """How much the distance to the teachers weighs beside the loss of the right answers."""
    entropy_weight: float = Field(0.01, ge=0)
    """β: how much the entropy of the branch weights is rewarded. Not given by the paper."""

    learning_rate: float = Field(5e-4, gt=0)
    weight_decay: float = Field(0.01, ge=0)
    warmup_steps: int = Field(0, ge=0)
    decay: Literal["none", "linear", "cosine"] = "none"
    decay_share: float = Field(0.4, gt=0, le=1)
    """The last part of the run, over which the rate decays."""
    final_rate: float = Field(0.0, ge=0, le=1)
    """Share of the learning rate that is left at the end of the decay."""
    clip_norm: float = Field(1.0, ge=0)
    """Largest norm of the gradient; 0 switches clipping off."""
    accumulate: int = Field(1, ge=1)
    """Batches whose gradients are averaged before a step."""
    ema_decay: float = Field(0.999, ge=0, lt=1)
    """Moving average of the weights, saved beside them; 0 switches it off."""
    autocast: bool = False
    """bfloat16 on CUDA; has no effect elsewhere."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    seed: int = Field(0, ge=0)
    workers: int = Field(1, ge=0)
    """Threads that build graphs ahead; 0 builds them in the training thread."""
    prefetch: int = Field(4, ge=1)
    """Draws built ahead."""

    validation: tuple[str, ...] = ()
    """Benchmarks whose validation sets are watched. Test sets are never read."""
    validation_limit: int = Field(200, ge=1)
    """Validation triples per benchmark."""
    validate_steps: int = Field(0, ge=0)
    validate_minutes: float = Field(0.0, ge=0)
    patience: int = Field(0, ge=0)
    """Stop after so many validations without a better one; 0 never stops early."""
    checkpoint_steps: int = Field(20_000, ge=0)
    checkpoint_minutes: float = Field(5.0, ge=0)
    keep: int = Field(10, ge=0)
    """How many of the last checkpoints stay on disk; 0 keeps all. The best one stays anyway."""
    log_steps: int = Field(50, ge=1)
    tensorboard: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.steps is None and self.minutes is None:
            raise ValueError("a run needs a budget: give steps, minutes or both")
        if not self.graphs:
            raise ValueError("graphs: at least one graph is needed")
        if not self.phases:
            raise ValueError("phases: at least one is needed")
        for name in self.whole_teachers:
            if name not in self.teachers:
                raise ValueError(f"whole_teachers: {name} is none of the teachers ({', '.join(self.teachers)})")
        for phase in self.phases:
            if phase.graph_weights is not None and len(phase.graph_weights) != len(self.graphs):
                raise ValueError(
                    f"graph_weights: wanted one per training graph ({len(self.graphs)}), got {len(phase.graph_weights)}"
                )
        return self

    @property
    def gamma_config(self) -> GammaConfig:
        """The model's own config."""
        return preset(self.model).with_options(**self.model_options)


def read_config(path: str | Path, changes: Iterable[str] = ()) -> TrainConfig:
    """A config file with `key=value` changes on top; keys may be dotted (`phases.0.batch_size=8`)."""
    options = read_options(path)
    for change in changes:
        set_option(options, change)
    return TrainConfig.parse(options, where=str(path))


def shipped_configs() -> dict[str, Path]:
    """The runs that ship with the package, by name."""
    folder = Path(__file__).parents[1] / "configs"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_config(name: str | Path) -> Path:
    """A file, or one of the shipped runs by its name (`ten-minutes`)."""
    path, shipped = Path(name), shipped_configs()
    if path.is_file() or path.suffix == ".toml":
        return path
    if str(name) not in shipped:
        hint = did_you_mean(str(name), shipped)
        raise ConfigError(f"no config {name}: wanted a TOML file, or one of {', '.join(shipped)}{hint}")
    return shipped[str(name)]


def read_options(path: str | Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The options of a TOML file. `base = "other.toml"` takes over what that file says and this one does not."""
    path = find_config(path)
    if path.resolve() in seen:
        raise ConfigError(f"{path}: its base leads back to itself ({' → '.join(p.name for p in (*seen, path))})")
    try:
        options = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"can't read the config {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
    base = options.pop("base", None)
    return options if base is None else {**read_options(path.parent / base, (*seen, path.resolve())), **options}


def set_option(options: dict[str, Any], change: str) -> None:
    """Apply one `key=value` to nested options. The value is read as TOML; what is not TOML is a text."""
    key, separator, text = change.partition("=")
    if not separator or not key:
        raise ConfigError(f"--set wants key=value, got {change!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    put_option(options, key, value)


def put_option(options: dict[str, Any], key: str, value: Any) -> None:
    """Set one option, where `phases.0.batch_size` means the one in the first of the phases."""
    *parents, last = key.split(".")
    place: Any = options
    for part in parents:
        place = _step_into(place, part, key)
    if isinstance(place, list):
        _step_into(place, last, key)
        place[int(last)] = value
    else:
        place[last] = value


def _step_into(place: Any, part: str, key: str) -> Any:
    if isinstance(place, list):
        if not part.isdigit() or int(part) >= len(place):
            raise ConfigError(f"{key}: {part!r} is no position in a list of {len(place)}")
        return place[int(part)]
    if part not in place and part not in TrainConfig.model_fields:
        raise ConfigError(f"{key}: no option {part!r}{did_you_mean(part, TrainConfig.model_fields)}")
    return place.setdefault(part, {})
