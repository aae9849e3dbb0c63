"""The model: layer, encoder, fusion, and what puts them together."""
