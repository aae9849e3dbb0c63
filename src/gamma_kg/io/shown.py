"""Names as they may be shown: what steers a terminal or turns the direction of writing is made visible.

Names come from files that anybody may have written. A control character in one could move the cursor or colour the
screen, a right-to-left override could make a name look like another one; XML refuses most control characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

# C0 and C1 controls, line and paragraph separators, marks and overrides of direction, lone surrogates, non-characters.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
# What a spreadsheet takes for a formula; a number with a sign is none.
_FORMULA = re.compile(r"\s*[=@+\-]|[\t\r\n]")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def shown(text: str) -> str:
    """The text for a terminal or a page; what can't be seen is written as its number, such as \\x1b or \\u202e."""
    return _UNSAFE.sub(lambda match: _number(ord(match[0])), text)


def shown_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(shown(line) for line in text.split("\n"))


def html_text(text: str) -> str:
    """The same for HTML and SVG, with markup escaped."""
    return escape(shown(text), quote=True)


def spreadsheet_text(text: str) -> str:
    """The text for a CSV cell: what a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def few(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list that may be long, and how many there are besides."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _number(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
