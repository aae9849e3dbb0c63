"""GAMMA: ranked missing facts on any knowledge graph, without training."""

from gamma_kg.config import GammaConfig
from gamma_kg.errors import CheckpointError, ConfigError, DataError, GammaError, UnknownNameError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predict import Gamma
from gamma_kg.predictor import Prediction

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Gamma",
    "GammaConfig",
    "GammaError",
    "KnowledgeGraph",
    "Prediction",
    "UnknownNameError",
]
