"""What a graph or a test set is like: relation patterns, half-links, leakage. Numpy and scipy only."""
