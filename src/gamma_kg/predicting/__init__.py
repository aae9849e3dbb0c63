"""From a loaded model and a graph to ranked names: `gamma.py` is the way in."""
