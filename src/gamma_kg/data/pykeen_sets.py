"""PyKEEN's data sets by name ("pykeen:Nations"), turned into the common layout once. An optional extra."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError, did_you_mean
from gamma_kg.io.atomic import write_text

PREFIX = "pykeen:"


def pykeen_folder(name: str, cache: Path) -> Path:
    """The folder with train, valid and test files of a PyKEEN set; made on first use, then read without PyKEEN."""
    folder = cache / "pykeen" / re.sub(r"[^a-z0-9]", "", name.casefold())
    if (folder / "test.txt").is_file():
        return folder
    try:
        datasets: Any = importlib.import_module("pykeen.datasets")
    except ImportError as error:
        raise DataError(f"{PREFIX}{name} needs PyKEEN ({error}): pip install 'gamma-kg[pykeen]'") from None
    known = datasets.dataset_resolver
    if known.normalize(name) not in known.lookup_dict:
        names = sorted(entry.__name__ for entry in known.lookup_dict.values())
        raise DataError(f"PyKEEN has no set {name!r}{did_you_mean(name, names)}; it has {', '.join(names)}")
    try:
        found = datasets.get_dataset(dataset=name)
        parts = {"train": found.training, "valid": found.validation, "test": found.testing}
        # test.txt last: where it is, the others are whole.
        for part, factory in parts.items():
            if factory is not None:
                _write(folder / f"{part}.txt", factory.label_triples(factory.mapped_triples))
    except OSError as error:
        raise DataError(f"can't get {PREFIX}{name} into {folder}: {error}") from None
    return folder


def _write(path: Path, triples: Any) -> None:
    write_text(path, "".join("\t".join(map(str, triple)) + "\n" for triple in triples))
