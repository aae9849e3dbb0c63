"""Graphs and models that many tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.nn.config import GammaConfig
from required import SHARED, pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small inputs gain nothing from threads, and results are compared bit for bit."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests calibrate stays among them: a kept calibration changes the answers of later programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAMMA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of benchmark graphs and golden scores beside the project."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared (benchmark graphs and golden scores), which is not here")
    return SHARED


@pytest.fixture
def family() -> KnowledgeGraph:
    """Eleven facts about two families; `lives in` names an entity that nothing else does."""
    return KnowledgeGraph.from_triples(
        [
            ("Ann", "mother of", "Bob"),
            ("Ann", "mother of", "Cleo"),
            ("Dan", "father of", "Bob"),
            ("Dan", "father of", "Cleo"),
            ("Bob", "sibling of", "Cleo"),
            ("Cleo", "sibling of", "Bob"),
            ("Eve", "mother of", "Finn"),
            ("Gus", "father of", "Finn"),
            ("Ann", "married to", "Dan"),
            ("Dan", "married to", "Ann"),
            ("Finn", "lives in", "Nairobi"),
        ]
    )


@pytest.fixture(scope="session")
def small_config() -> GammaConfig:
    """The published model in small: fast, with all its parts."""
    return GammaConfig(dim=8, num_layers=2, attention_dim=6)


@pytest.fixture(scope="session")
def small_gamma(small_config: GammaConfig) -> Gamma:
    return Gamma.from_config(small_config, seed=3)
