"""GAMMA: ranked missing facts on any knowledge graph, without training."""

from gamma_kg.errors import CheckpointError, ConfigError, DataError, GammaError, UnknownNameError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.predictor import Prediction

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
