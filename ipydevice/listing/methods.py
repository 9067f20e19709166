"""What the methods of a user's class do with an attribute, read from their bytecode.

The source may be gone or be a cell's; the code object always tells which attribute is
loaded and whether what was loaded is moved before it is used.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from ipydevice.placement.kinds import class_dicts, home_of

_MOVES = frozenset({"to", "cuda", "cpu", "xpu", "npu", "type_as", "to_device", "send_to_device"})
_HARMLESS = frozenset({
    "append", "extend", "clear", "insert", "pop", "update", "setdefault",  # collected into, not computed with
    "device", "shape", "dtype", "size", "ndim", "dim", "numel", "is_cuda", "item", "tolist",  # the same on any device
})  # fmt: skip
_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})  # two until Python 3.11, one since
_OPERATORS = ("BINARY_OP", "COMPARE_OP")
_ENDS = ("STORE_", "POP_TOP", "RETURN_", "POP_JUMP", "IS_OP", "CONTAINS_OP")  # kept or asked about, not computed with


def moves_tensors(module: Any) -> bool:
    """Whether the forward of a class that is not torch's moves anything between devices."""
    return any(_MOVES.intersection(code.co_names) for code in _forward_codes(module))


def reads_unmoved(module: Any, attribute: str) -> bool:
    """Whether forward computes with ``self.<attribute>`` as it is: neither moved first nor merely collected into."""
    return any(_loads_unmoved(code, attribute) for code in _forward_codes(module))


def _forward_codes(module: Any) -> Iterator[CodeType]:
    """Code of ``forward`` and of the methods that it names, where a class outside torch defines them."""
    if home_of(module) == "torch":
        return
    spaces = class_dicts(type(module))
    wanted, done = ["forward"], {"forward"}
    while wanted:
        name = wanted.pop()
        function = next((space[name] for space in spaces if name in space), None)
        code = _code_of(function)
        if code is None:
            continue
        yield code
        yield from (inner for inner in code.co_consts if type(inner) is CodeType)
        for other in code.co_names:
            if other not in done and any(type(space.get(other)) is FunctionType for space in spaces[:-1]):
                done.add(other)
                if home_of_function(next(space[other] for space in spaces if other in space)) != "torch":
                    wanted.append(other)


def home_of_function(function: Any) -> str:
    """The top-level package in which a function was defined."""
    module = function.__module__ if type(function) is FunctionType else None
    return module.partition(".")[0] if type(module) is str else ""


def _code_of(function: Any) -> CodeType | None:
    """The code of a plain function, below decorators that used `functools.wraps`."""
    for _ in range(8):
        if type(function) is not FunctionType:
            return None
        inner = function.__dict__.get("__wrapped__")
        if inner is None:
            return None if home_of_function(function) == "torch" else function.__code__
        function = inner
    return None


def _loads_unmoved(code: CodeType, attribute: str) -> bool:
    steps = list(dis.get_instructions(code))
    return any(
        step.opname in _LOADS and step.argval == attribute and _is_operand(steps[i + 1 :])
        for i, step in enumerate(steps)
    )


def _is_operand(steps: list[dis.Instruction]) -> bool:
    """Whether the value on top of the stack becomes an operand or an argument as it is.

    `above` counts what lies on it; an item of it (``self.pe[:n]``) lives on the same device and counts as it.
    """
    above = 0
    for step in steps:
        if above == 0 and step.opname in _LOADS and step.argval in _MOVES | _HARMLESS:
            return False
        if above <= 1 and step.opname.startswith(_ENDS):
            return False
        if above <= 1 and step.opname.startswith(_OPERATORS) and step.argrepr != "[]":
            return True
        if above == 0 and step.opname in ("GET_ITER", "FOR_ITER"):
            return True
        above += dis.stack_effect(step.opcode, step.arg, jump=False)
        if above < 0:
            return True
    return False
