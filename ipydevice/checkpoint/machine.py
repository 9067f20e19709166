"""A pickle read as a list of instructions: what it would make and call, without making or calling it.

The opcodes are Python's own `pickletools.genops`; here they move descriptions on a stack.
"""

from __future__ import annotations

import pickletools
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from ipydevice.checkpoint.values import Global, Held, Made, Persistent, parts

MOST_STEPS = 50_000_000  # opcodes of one pickle; a large language model has some hundred thousand
COMPUTED = "a computed function"
_LITERALS = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "STRING", "BINSTRING", "SHORT_BINSTRING",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE",
    "BINUNICODE8", "FLOAT", "BINFLOAT",
})  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_LIST": "list", "EMPTY_TUPLE": "tuple", "EMPTY_DICT": "dict", "EMPTY_SET": "set"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_COLLECTED = {"TUPLE": "tuple", "LIST": "list", "FROZENSET": "set", "DICT": "dict"}


@dataclass(slots=True)
class Described:
    """One pickle: its value, all that it names and calls, and where reading ended early."""

    value: Any = None
    named: list[Global] = field(default_factory=list)  # each reference to code, in order
    called: list[Global] = field(default_factory=list)
    opcodes: set[str] = field(default_factory=set)
    damage: str = ""


def describe(file: IO[bytes]) -> Described:
    """Read one pickle from `file`, which is left behind its end."""
    return _Machine().run(file)


class _Machine:
    def __init__(self) -> None:
        self._out = Described()
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # the stacks under the open marks
        self._memo: dict[int, Any] = {}
        self._old_names = True  # protocols below 3 write Python 2's names, which pickle translates

    def run(self, file: IO[bytes]) -> Described:
        out, position = self._out, 0
        acts = _ACTS
        try:
            for steps, (opcode, argument, at) in enumerate(pickletools.genops(file)):
                position = at or 0
                name = opcode.name
                out.opcodes.add(name)
                if steps >= MOST_STEPS:
                    out.damage = f"more than {MOST_STEPS:,} instructions: not read to the end"
                    break
                if name in _LITERALS:
                    self._stack.append(argument)
                elif name == "STOP":
                    out.value = self._stack.pop()
                    return out
                else:
                    acts[name](self, name, argument)
        except (ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError, MemoryError) as error:
            # What the C unpickler would refuse as well: a truncated file, an empty stack, an unknown opcode.
            out.damage = f"damaged at byte {position:,} of the pickle ({type(error).__name__}: {str(error)[:120]})"
        if out.value is None:
            out.value = Held("list", [*(one for stack in self._below for one in stack), *self._stack])
        return out

    def _constant(self, name: str, argument: Any) -> None:
        self._stack.append(_CONSTANTS[name])

    def _empty(self, name: str, argument: Any) -> None:
        self._stack.append(Held(_EMPTY[name]))

    def _short_tuple(self, name: str, argument: Any) -> None:
        count = _TUPLES[name]
        if len(self._stack) < count:
            raise IndexError("too little on the stack")
        items = self._stack[-count:]
        del self._stack[-count:]
        self._stack.append(Held("tuple", items))

    def _collect(self, name: str, argument: Any) -> None:
        items = self._since_mark()
        kind = _COLLECTED[name]
        self._stack.append(Held(kind, [], _paired(items)) if kind == "dict" else Held(kind, items))

    def _mark(self, name: str, argument: Any) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _since_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._below.pop()
        return items

    def _put(self, name: str, argument: Any) -> None:
        self._memo[len(self._memo) if name == "MEMOIZE" else int(argument)] = self._stack[-1]

    def _get(self, name: str, argument: Any) -> None:
        self._stack.append(self._memo[int(argument)])

    def _append(self, name: str, argument: Any) -> None:
        items = [self._stack.pop()] if name == "APPEND" else self._since_mark()
        self._stack[-1].items.extend(items)

    def _set(self, name: str, argument: Any) -> None:
        if name == "SETITEM":
            value, key = self._stack.pop(), self._stack.pop()
            pairs = [(key, value)]
        else:
            pairs = _paired(self._since_mark())
        self._stack[-1].pairs.extend(pairs)

    def _global(self, name: str, argument: Any) -> None:
        if name == "GLOBAL":
            module, _, attribute = str(argument).partition(" ")
        elif name == "STACK_GLOBAL":
            attribute, module = _text(self._stack.pop()), _text(self._stack.pop())
        else:  # EXT1, EXT2, EXT4: a number that copyreg has given to some global
            module, attribute = "copyreg", f"extension {argument}"
        self._stack.append(self._named(module, attribute))

    def _named(self, module: str, name: str) -> Global:
        if self._old_names:
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        found = Global(module, name)
        self._out.named.append(found)
        return found

    def _make(self, name: str, argument: Any) -> None:
        """A call, whichever of the six opcodes asks for it."""
        keywords: list[Any] = []
        if name == "INST":
            module, _, attribute = str(argument).partition(" ")
            arguments: Any = Held("tuple", self._since_mark())
            maker: Any = self._named(module, attribute)
        elif name == "OBJ":
            maker, *given = self._since_mark()
            arguments = Held("tuple", given)
        else:
            if name == "NEWOBJ_EX":
                keywords = [self._stack.pop()]
            arguments, maker = self._stack.pop(), self._stack.pop()
        if isinstance(maker, Persistent):  # the legacy format wraps classes of modules: ("module", class, file, source)
            maker = next((part for part in parts(maker.identity) if isinstance(part, Global)), maker)
        self._out.called.append(maker if isinstance(maker, Global) else Global("", COMPUTED))
        self._stack.append(Made(maker, arguments, keywords))

    def _build(self, name: str, argument: Any) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if isinstance(target, Made):
            target.state = state

    def _persistent(self, name: str, argument: Any) -> None:
        self._stack.append(Persistent(argument if name == "PERSID" else self._stack.pop()))

    def _pop(self, name: str, argument: Any) -> None:
        if name == "POP_MARK" or not self._stack:
            self._since_mark()
        else:
            self._stack.pop()

    def _dup(self, name: str, argument: Any) -> None:
        self._stack.append(self._stack[-1])

    def _protocol(self, name: str, argument: Any) -> None:
        self._old_names = argument < 3

    def _nothing(self, name: str, argument: Any) -> None:
        """FRAME: it only tells how the rest is written; buffers out of band do not occur in files."""


def _paired(items: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(items[::2], items[1::2], strict=False))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "?"


_ACTS: dict[str, Callable[[_Machine, str, Any], None]] = {
    **dict.fromkeys(_CONSTANTS, _Machine._constant),
    **dict.fromkeys(_EMPTY, _Machine._empty),
    **dict.fromkeys(_TUPLES, _Machine._short_tuple),
    **dict.fromkeys(_COLLECTED, _Machine._collect),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine._put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine._get),
    **dict.fromkeys(("APPEND", "APPENDS", "ADDITEMS"), _Machine._append),
    **dict.fromkeys(("SETITEM", "SETITEMS"), _Machine._set),
    **dict.fromkeys(("GLOBAL", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"), _Machine._global),
    **dict.fromkeys(("REDUCE", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST"), _Machine._make),
    **dict.fromkeys(("PERSID", "BINPERSID"), _Machine._persistent),
    **dict.fromkeys(("POP", "POP_MARK"), _Machine._pop),
    **dict.fromkeys(("FRAME", "READONLY_BUFFER"), _Machine._nothing),
    "PROTO": _Machine._protocol,
    "MARK": _Machine._mark,
    "DUP": _Machine._dup,
    "BUILD": _Machine._build,
}
