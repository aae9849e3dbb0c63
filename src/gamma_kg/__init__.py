"""GAMMA: ranked missing facts on any knowledge graph, without training.

The public names load what they need when they are first used: `gamma --version` needs neither torch nor polars.
"""

# Nothing is imported here, not even from __future__: until `__main__` runs nobody catches Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gamma_kg.distributed.batch import GammaBatch
    from gamma_kg.errors import CheckpointError, ConfigError, DataError, GammaError, UnknownNameError
    from gamma_kg.graph.graph import KnowledgeGraph
    from gamma_kg.logic.ask import Answer, ask
    from gamma_kg.logic.formula import entity
    from gamma_kg.nn.config import GammaConfig
    from gamma_kg.predicting.gamma import Gamma
    from gamma_kg.predicting.prediction import Prediction

__all__ = [
    "Answer",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Gamma",
    "GammaBatch",
    "GammaConfig",
    "GammaError",
    "KnowledgeGraph",
    "Prediction",
    "UnknownNameError",
    "ask",
    "entity",
]

_HOME = {
    **dict.fromkeys(("Answer", "ask"), "logic.ask"),
    "entity": "logic.formula",
    **dict.fromkeys(("CheckpointError", "ConfigError", "DataError", "GammaError", "UnknownNameError"), "errors"),
    "Gamma": "predicting.gamma",
    "GammaBatch": "distributed.batch",
    "GammaConfig": "nn.config",
    "KnowledgeGraph": "graph.graph",
    "Prediction": "predicting.prediction",
}


def __getattr__(name: str) -> "Any":
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
