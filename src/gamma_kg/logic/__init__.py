"""Questions with more than one step: trees of conditions, answered by fuzzy sets of entities."""
