"""From files to numbers: names, tables of triples, benchmark sets. Nothing here needs torch."""
