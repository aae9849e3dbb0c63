"""How a printed command becomes a small one. Every word that is printed stays, or is replaced by one of its kind.

What is not here is made small by its surroundings: benchmark names find folders of some 140 facts (tiny_sets.py),
downloads and SPARQL come from loopback.
"""

from __future__ import annotations

# Words of a synopsis, such as `gamma predict GRAPH --head H`. DIR… and RUN are what commands before them made.
PLACEHOLDERS = {
    "GRAPH": ["demo"],
    "GRAPH…": ["demo"],
    "H": ["Kenya"],
    "R": ["member of"],
    "T": ["African Union"],
    "[MODEL]": [],
    "NAME": ["nl-100"],
    "DATASET": ["nl-100"],
    "DATASET…": ["nl-100"],
    "DIR…": ["runs/results"],
    "CONFIG.toml": ["gamma-1"],
    "RUN": ["runs/gamma-1"],
    "PLAN.toml": ["ablate-fusion-mechanism"],
    "QUESTION": ["SELECT ?x WHERE { <Kenya> <borders> ?y . ?y <borders> ?x }"],
    "FILES…": ["family.ttl"],
    "MODEL…": ["gamma-2", "gamma-3"],
}

# Values of options that say how long to work; another number means the same, for less time.
VALUES = {"--per-type": "2", "--limit": "20", "--minutes": "0.004", "--nproc_per_node": "2", "--workers": "1"}

# With `--task queries` a limit is a number of queries of each shape: a tiny set has few, and is searched long for more.
QUERIES_OF_A_SHAPE = "2"

# Options that a command is given besides.
MORE = {
    ("gamma", "pretrain"): ["--set", "steps=2"],
    ("gamma", "finetune"): ["--set", "steps=2", "--set", "phases.0.batch_size=4", "--set", "validation_limit=5"],
    ("gamma", "ablate"): ["--set", "steps=1", "--set", "seeds=[0]", "--set", "limit=2"],
    ("gamma", "evaluate"): ["--out", "runs/results"],
    ("gamma", "develop"): ["--triples", "3"],
    ("gamma", "adapt"): ["--minutes", "0.004"],
    ("gamma", "bench"): ["--rounds", "1"],
    ("gamma", "queries"): ["--per-type", "2"],
    ("gamma", "complete"): ["--budget", "2s"],
    ("python", "benchmarks/train_queries.py"): ["--steps", "1", "--minutes", "0.2"],
    ("python", "benchmarks/completion_precision.py"): ["--seconds", "0.5"],
    ("python", "benchmarks/time_by_size.py"): ["--sizes", "500", "--queries", "1"],
    ("python", "benchmarks/faults.py"): [
        *"--part native --record faults.jsonl --lanes 1 --only".split(),
        "native: ids",
    ],
    ("python", "benchmarks/explanations.py"): ["--facts", "1", "--draws", "1"],
}


def shrink(words: list[str]) -> list[str]:
    """The same command, small."""
    words = [new for word in words for new in PLACEHOLDERS.get(word, [word])]
    program = words[words.index("-m") + 1 :] if words[0] == "torchrun" else words
    small = [*_small_values(words)]
    for command, options in MORE.items():
        if tuple(program[:2]) in (command, ("gamma_kg", *command[1:])):
            small += _pairs_not_given(options, words)
    return small


def _small_values(words: list[str]) -> list[str]:
    asks_for_queries = "--task queries" in " ".join(words)
    values = VALUES | ({"--limit": QUERIES_OF_A_SHAPE} if asks_for_queries else {})
    small: list[str] = []
    for word in words:
        option, equals, _ = word.partition("=")
        if equals and option in values:
            small.append(f"{option}={values[option]}")
        else:
            small.append(values.get(small[-1], word) if small else word)
    return small


def _pairs_not_given(options: list[str], words: list[str]) -> list[str]:
    """What the page itself says about an option holds: only `--set` may be given again."""
    added: list[str] = []
    is_wanted = True
    for word in options:
        if word.startswith("--"):
            is_wanted = word == "--set" or word not in words
        if is_wanted:
            added.append(word)
    return added
