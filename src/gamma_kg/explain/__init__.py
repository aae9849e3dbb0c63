"""Why the model believes a fact: paths, branches, and the facts it rests on."""

from gamma_kg.explain.explain import Explanation, KeyFact, Path, Step, explain

__all__ = ["Explanation", "KeyFact", "Path", "Step", "explain"]
