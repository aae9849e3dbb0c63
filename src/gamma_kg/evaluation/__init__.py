"""Filtered ranking: scores in, ranks and metrics out."""
