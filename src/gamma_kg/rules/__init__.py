"""What a graph's own facts, and an ontology's axioms, say for and against a proposed fact."""

from gamma_kg.rules.rules import Rules, rules_of

__all__ = ["Rules", "rules_of"]
