"""Pages and pictures that are made while the site is built: the command reference and the four algebras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from algebra_pictures import ALGEBRA_PICTURES
from command_reference import command_reference


def on_files(files: Files, config: MkDocsConfig, **rest: Any) -> Files:
    """Adds the generated files to those found on disk."""
    files.append(File.generated(config, "commands.md", content=command_reference()))
    for name, draw in ALGEBRA_PICTURES.items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=draw()))
    return files
