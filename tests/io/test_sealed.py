"""Records that we write and read again: what was changed is seen, what is no record is one error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gamma_kg.errors import ConfigError, DataError
from gamma_kg.io.sealed import parsed, read_object, seal, unsealed

RECORD = {"name": "Köln", "values": [1, 0.1, None]}


def test_what_was_sealed_comes_back_and_a_change_is_seen() -> None:
    sealed = parsed(json.dumps(seal(RECORD)))
    assert unsealed(sealed) == RECORD
    for changed in ({**sealed, "name": "Koln"}, {**sealed, "more": 1}, RECORD, [], "text", {}):
        with pytest.raises(ValueError, match="changed since"):
            unsealed(changed)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[" * 100_000, "nested too deep"),
        (b"\xff\xfe\xff", "can't be read as a plan"),
        (b'{"a": ', "can't be read as a plan"),
        (b"[1]", "is not a plan"),
        (b'{"a": 1}', "b missing"),
        (json.dumps({**seal({"a": 1, "b": 2}), "b": 3}).encode(), "changed since"),
    ],
)
def test_a_file_of_something_else_is_one_error(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=told) as error:
        read_object(path, "a plan", keys=("b",), error=ConfigError)
    assert "\n" not in str(error.value)


def test_a_file_with_and_one_without_a_checksum_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for content in (seal(RECORD), RECORD):
        path.write_text(json.dumps(content))
        assert read_object(path, "a plan", keys=("name",)) == RECORD
    with pytest.raises(DataError, match="No such file"):
        read_object(tmp_path / "none", "a plan")
