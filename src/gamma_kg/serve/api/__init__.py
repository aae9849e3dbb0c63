"""The REST interface, version 1: one file per group of routes."""
