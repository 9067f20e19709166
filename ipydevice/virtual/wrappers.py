"""The device check that torchgen generates for each CUDA operator, read from the installed PyTorch itself.

``native_functions.yaml`` ships in every torch wheel (package torchgen).  It says which operators a CUDA build checks
before it runs them, in which order, and under which wrapper name the message speaks of them.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Declared:
    """What native_functions.yaml says of one operator."""

    checked: bool  # no `device_check: NoCheck`
    structured: bool
    delegate: str | None  # the structured out= variant that a functional or in-place variant stands on
    cuda: bool  # has a kernel of its own for CUDA


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a CUDA build checks one operator."""

    name: str  # "addmm", "scatter_.src": the operator with its overload
    method: str | None  # "wrapper_CUDA_addmm"; None: no common check, the kernel itself looks
    order: tuple[str, ...]  # its arguments in the order checked


@functools.cache
def declared() -> dict[str, Declared]:
    import torchgen  # type: ignore[import-untyped]

    path = os.path.join(os.path.dirname(torchgen.__file__), "packaged", "ATen", "native", "native_functions.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found: dict[str, Declared] = {}
    # A YAML parser takes seconds for these 16,000 lines, and PyYAML is no requirement of torch
    for block in re.split(r"^- func: ", text, flags=re.M)[1:]:
        delegate = re.search(r"^  structured_delegate: (\S+)", block, re.M)
        keys = {key.strip() for line in re.findall(r"^    ([A-Z][\w, ]*): ", block, re.M) for key in line.split(",")}
        found[block.split("(", 1)[0]] = Declared(
            checked="device_check: NoCheck" not in block,
            structured=delegate is not None or "\n  structured: True" in block,
            delegate=delegate and delegate.group(1),
            cuda="CUDA" in keys,
        )
    return found


@functools.cache
def wrapper(func: Any) -> Wrapper:
    """The check of an operator overload, such as ``torch.ops.aten.addmm.default``."""
    schema = func._schema
    name = schema.name.split("::")[1] + (f".{schema.overload_name}" if schema.overload_name else "")
    outputs = tuple(argument.name for argument in schema.arguments if argument.is_out)
    order = outputs + tuple(argument.name for argument in schema.arguments if not argument.is_out)
    entry = declared().get(name) if func.namespace == "aten" else None
    return Wrapper(name, None if entry is None else _method(name, entry, bool(outputs)), order)


def _method(name: str, entry: Declared, is_out: bool) -> str | None:
    cuda = entry.cuda or bool(entry.delegate and declared()[entry.delegate].cuda)
    if not (cuda and entry.checked):
        return None
    base, _, overload = name.partition(".")
    full = base + ("_out" if is_out else "")
    # torchgen puts the overload behind a structured kernel's name and before a plain one's
    if entry.structured:
        return f"wrapper_CUDA_{full}_{overload}" if overload else f"wrapper_CUDA_{full}"
    return f"wrapper_CUDA_{overload}_{full}"
