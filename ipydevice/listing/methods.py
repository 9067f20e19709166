"""What the methods of a user's class do with an attribute, read from their bytecode.

The source may be gone or be a cell's; the code object always tells which attribute is
loaded and whether what was loaded is moved before it is used.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from ipydevice.placement.kinds import class_dicts, home_of, is_module

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


def reads_unmoved(owner: Any, *attributes: str) -> bool:
    """Whether forward computes with ``self.a``, or ``self.a.b``, as it is: not moved first, nor merely collected into.

    Of an object that is no module, ``__call__`` stands for forward.
    """
    return any(_loads_unmoved(code, attributes) for code in _forward_codes(owner))


def _forward_codes(owner: Any) -> Iterator[CodeType]:
    """Code of ``forward`` and of the methods and properties that it names, where a class outside torch defines them."""
    if home_of(owner) == "torch":
        return
    spaces = class_dicts(type(owner))
    wanted = ["forward" if is_module(owner) else "__call__"]
    done = set(wanted)
    while wanted:
        name = wanted.pop()
        code = _code_of(next((space[name] for space in spaces if name in space), None))
        if code is None:
            continue
        yield code
        yield from (inner for inner in code.co_consts if type(inner) is CodeType)
        fresh = [other for other in code.co_names if other not in done and any(other in space for space in spaces)]
        done.update(fresh)
        wanted += fresh


def _code_of(function: Any) -> CodeType | None:
    """The code of a method or property that is not torch's, below decorators that used `functools.wraps`."""
    if type(function) is property:
        function = function.fget
    for _ in range(8):
        if type(function) is not FunctionType:
            return None
        inner = function.__dict__.get("__wrapped__")
        if inner is None:
            module = function.__module__
            return None if type(module) is not str or module.partition(".")[0] == "torch" else function.__code__
        function = inner
    return None


def _loads_unmoved(code: CodeType, attributes: Sequence[str]) -> bool:
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    length = len(attributes)
    for i in range(len(steps) - length):
        loads = steps[i : i + length]
        matches = all(
            step.opname in _LOADS and step.argval == name for step, name in zip(loads, attributes, strict=True)
        )
        if matches and _is_operand(steps[i + length :]):
            return True
    return False


def _is_operand(steps: list[dis.Instruction]) -> bool:
    """Whether the value on top of the stack becomes an operand or an argument as it is.

    `above` counts what lies on it; an item of it (``self.pe[:n]``) lives on the same device and counts as it.
    """
    above = 0
    for i, step in enumerate(steps):
        if above == 0 and step.opname in _LOADS and step.argval in _MOVES | _HARMLESS:
            return False
        if above == 0 and step.opname == "STORE_FAST":
            return _alias_is_operand(steps[i + 1 :], step.argval)
        if above <= 1 and step.opname.startswith(_ENDS):
            return False
        if above <= 1 and step.opname.startswith(_OPERATORS) and step.argrepr != "[]":
            return True
        if above == 0 and step.opname in ("GET_ITER", "FOR_ITER"):
            return True
        above += dis.stack_effect(step.opcode, step.arg, jump=False)
        if above < 0:
            return not _result_is_moved(steps[i + 1 :])
    return False


def _alias_is_operand(steps: list[dis.Instruction], name: str) -> bool:
    """Whether a local variable is an operand before it is bound anew."""
    for i, step in enumerate(steps):
        if step.opname == "STORE_FAST" and step.argval == name:
            return False
        if step.opname == "LOAD_FAST" and step.argval == name and _is_operand(steps[i + 1 :]):
            return True
    return False


def _result_is_moved(steps: list[dis.Instruction]) -> bool:
    """Whether the result of a call is moved at once: ``torch.stack(self.rows).to(device)``."""
    after = next((step for step in steps if step.opname not in ("CALL", "PRECALL")), None)
    return after is not None and after.opname in _LOADS and after.argval in _MOVES
