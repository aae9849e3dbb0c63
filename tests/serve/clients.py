"""Names that several tests of the server share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BASE = "http://127.0.0.1"
HOSTILE = "<script>alert(1)</script>"
MakeClient = Callable[..., Any]
