"""Training: configs, draws and batches, losses, the one loop, and what is built on it."""
