"""From triples to the structures that message passing runs on."""
