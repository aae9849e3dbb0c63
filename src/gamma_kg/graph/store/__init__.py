"""A graph on disk: a folder `G.gamma` of arrays that are mapped into memory, so that opening costs nothing.

G.gamma/header.json          version, counts, size and hash of each array, and which generation holds them
G.gamma/GENERATION/NAME.bin  the arrays: edges in the layout of `Edges`, names, the relation graph
G.gamma/building/            what `gamma index` has done so far; the same command goes on from there
G.gamma/.lock                there while somebody writes

Replacing header.json is the one step that puts a new generation in the place of the old one. Whatever goes wrong
before it (a full disk, a crash) leaves the old store whole.
"""
