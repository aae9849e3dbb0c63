"""How long a person waits before the first answer: whole commands, against `import torch`, which every answer needs."""

from __future__ import annotations

import subprocess
import sys

from gamma_kg.bench.timing import best_times

FIRST_QUESTION = ("predict", "demo", "--head", "Kenya", "--relation", "member of", "-k", "3")


def measure_start(rounds: int) -> dict[str, float]:
    """Seconds of `import torch`, of `gamma --version` and of a first answer, each a process of its own, in turns."""
    commands = {
        "import torch": (sys.executable, "-c", "import torch"),
        "gamma --version": (sys.executable, "-m", "gamma_kg", "--version"),
        "first answer": (sys.executable, "-m", "gamma_kg", *FIRST_QUESTION),
    }
    return best_times({name: lambda command=command: _run(command) for name, command in commands.items()}, rounds)  # type: ignore[misc]


def _run(command: tuple[str, ...]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
