"""Query sets in the BetaE layout (a folder of .pkl files), read without executing anything in them.

A pickle is a program. This reader runs the few of its instructions that put numbers, texts, lists, tuples, sets and
dicts together, one by one; any other instruction, and any other name that the file asks for, ends the reading. Python's
own reader would do even with such names alone: a few hundred bytes of tuples in tuples make it hash for years.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError

# Old protocols build sets by name; BetaE's answers lie in a dict that makes sets.
SETS = ("builtins set", "__builtin__ set", "builtins frozenset", "__builtin__ frozenset")
DICTS = ("collections defaultdict",)
NAMES = (*SETS, *DICTS, "builtins int")
MAX_DEPTH = 40
# How much larger than the file its content may be where a part of it is used many times.
MAX_GROWTH, ALWAYS_ALLOWED = 16, 1_000
ONLY = "only numbers, texts, tuples, sets and dicts are read"


def read_pickle(path: str | Path) -> Any:
    """What the file holds, as plain Python objects; anything else in it is refused."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}") from None
    try:
        return _Machine(MAX_GROWTH * len(content) + ALWAYS_ALLOWED).run(content)
    except DataError as error:
        raise DataError(f"{path} was not read: it {error}") from None
    except (ValueError, TypeError, LookupError) as error:  # a damaged pickle fails in many ways, all mean the same
        told = str(error).splitlines()[0] if str(error) else ""
        raise DataError(f"{path} is damaged or no pickle of plain numbers ({type(error).__name__}: {told})") from None


class _Part:
    """A value with its depth and its size as a tree; nothing is added to it once it is inside another."""

    __slots__ = ("depth", "is_inside", "size", "value")

    def __init__(self, value: Any, depth: int = 0, size: int = 1) -> None:
        self.value, self.depth, self.size, self.is_inside = value, depth, size, False


class _Mark:
    pass


class _Name(str):
    """A type that the file asks for; it never leaves this file."""

    __slots__ = ()


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self, max_size: int) -> None:
        self._stack: list[_Part | _Mark] = []
        self._memo: dict[int, _Part] = {}
        self._max_size = max_size

    def run(self, content: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(content):
            if opcode.name == "STOP":
                break
            if opcode.name in VALUES:
                self._stack.append(_Part(argument))
            elif opcode.name in STEPS:
                STEPS[opcode.name](self, argument)
            elif opcode.name not in NOTHING:
                raise DataError(f"has the instruction {opcode.name}; {ONLY}")
        found = self._pop()
        if isinstance(found.value, _Name):
            raise DataError(f"holds a type; {ONLY}")
        return found.value

    def _pop(self) -> _Part:
        found = self._stack.pop()
        if isinstance(found, _Mark):
            raise ValueError("a mark where a value should be")
        return found

    def _since_mark(self) -> list[_Part]:
        found: list[_Part] = []
        while not isinstance(part := self._stack.pop(), _Mark):
            found.append(part)
        return found[::-1]

    def _built(self, make: Callable[[Iterable[Any]], Any], parts: list[_Part]) -> None:
        whole = _Part(None)
        self._count(whole, parts)
        whole.value = make([part.value for part in parts])
        self._stack.append(whole)

    def _count(self, whole: _Part, parts: list[_Part]) -> None:
        """The parts go into the whole: before anything is hashed, so that a hash takes no longer than reading."""
        if whole.is_inside or any(part is whole for part in parts):
            raise DataError("holds itself")
        for part in parts:
            if isinstance(part.value, _Name):
                raise DataError(f"holds a type; {ONLY}")
            part.is_inside = True
        whole.depth = max((whole.depth, *(part.depth + 1 for part in parts)))
        whole.size += sum(part.size for part in parts)
        if whole.depth > MAX_DEPTH or whole.size > self._max_size:
            raise DataError("is nested too deep or claims to be too large")

    def _add(self, parts: list[_Part], kind: type) -> None:
        whole = self._stack[-1]
        if isinstance(whole, _Mark) or type(whole.value) is not kind:
            raise ValueError(f"no {kind.__name__} where one should be")
        self._count(whole, parts)
        held: Any = whole.value
        values = [part.value for part in parts]
        if kind is dict:
            held.update(zip(values[::2], values[1::2], strict=True))
        elif kind is set:
            held.update(values)
        else:
            held.extend(values)

    def _dict(self, parts: list[_Part]) -> None:
        self._stack.append(_Part({}))
        self._add(parts, dict)

    def _name(self, name: str) -> None:
        if name not in NAMES:
            raise DataError(f"asks for {name.replace(' ', '.')}; {ONLY}")
        self._stack.append(_Part(_Name(name)))

    def _stack_name(self) -> None:
        name, module = self._pop(), self._pop()
        self._name(f"{module.value} {name.value}")

    def _call(self) -> None:
        """A set of a list, or a dict that makes sets: of a type and its arguments."""
        arguments, name = self._pop(), self._pop().value
        if not isinstance(name, _Name) or name not in (*SETS, *DICTS) or type(arguments.value) is not tuple:
            raise DataError(f"calls something; {ONLY}")
        if name in DICTS:
            self._stack.append(_Part({}))
            return
        members = arguments.value[0] if arguments.value else []
        if type(members) not in (list, tuple, set):
            raise ValueError("a set of something that is no list")
        self._stack.append(_Part(set(members), arguments.depth, arguments.size))

    def _arguments(self, parts: list[_Part]) -> None:
        """A tuple; of a type alone it can only be what a dict of sets is made with."""
        if len(parts) == 1 and isinstance(parts[0].value, _Name):
            self._stack.append(_Part(()))
        else:
            self._built(tuple, parts)

    def _keep(self, place: int | None) -> None:
        part = self._stack[-1]
        if isinstance(part, _Mark):
            raise ValueError("a mark where a value should be")
        self._memo[len(self._memo) if place is None else place] = part


NOTHING = ("PROTO", "FRAME")
VALUES = (
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
)
STEPS: dict[str, Callable[[_Machine, Any], object]] = {
    "MARK": lambda machine, _: machine._stack.append(_Mark()),
    "POP": lambda machine, _: machine._stack.pop(),
    "EMPTY_LIST": lambda machine, _: machine._built(list, []),
    "EMPTY_TUPLE": lambda machine, _: machine._built(tuple, []),
    "EMPTY_SET": lambda machine, _: machine._built(set, []),
    "EMPTY_DICT": lambda machine, _: machine._dict([]),
    "LIST": lambda machine, _: machine._built(list, machine._since_mark()),
    "TUPLE": lambda machine, _: machine._arguments(machine._since_mark()),
    "FROZENSET": lambda machine, _: machine._built(set, machine._since_mark()),
    "DICT": lambda machine, _: machine._dict(machine._since_mark()),
    "TUPLE1": lambda machine, _: machine._arguments([machine._pop()]),
    "TUPLE2": lambda machine, _: machine._built(tuple, [machine._pop(), machine._pop()][::-1]),
    "TUPLE3": lambda machine, _: machine._built(tuple, [machine._pop(), machine._pop(), machine._pop()][::-1]),
    "APPEND": lambda machine, _: machine._add([machine._pop()], list),
    "APPENDS": lambda machine, _: machine._add(machine._since_mark(), list),
    "ADDITEMS": lambda machine, _: machine._add(machine._since_mark(), set),
    "SETITEM": lambda machine, _: machine._add([machine._pop(), machine._pop()][::-1], dict),
    "SETITEMS": lambda machine, _: machine._add(machine._since_mark(), dict),
    "GLOBAL": lambda machine, name: machine._name(name),
    "STACK_GLOBAL": lambda machine, _: machine._stack_name(),
    "REDUCE": lambda machine, _: machine._call(),
    "MEMOIZE": lambda machine, _: machine._keep(None),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda machine, place: machine._keep(place)),
    **dict.fromkeys(
        ("GET", "BINGET", "LONG_BINGET"), lambda machine, place: machine._stack.append(machine._memo[place])
    ),
}
