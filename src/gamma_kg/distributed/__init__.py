"""Millions of queries: the same answers from many processes or machines, by Ray, Spark or a plain loop."""
