"""Point 2: does the diagnosis name the stray object, a view or member of it, or what directly holds it?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .case import Case
from .objects import devices, members, same, walk

Frames = list[tuple[int | None, FrameType]]


def judge(case: Case, culprit: dict[str, Any] | None, frames: Frames, namespace: dict[str, Any]) -> str:
    """ "" where the culprit of the diagnosis is right, else what is wrong with it.

    Runs the expressions of the header and of the diagnosis: call it in a fork.
    """
    nothing_right = "" in case.culprits  # no stray at all: a device that is not there, a worker's text
    if culprit is None:
        return "" if nothing_right else "no culprit"
    if case.header["culprit"] == "":
        return f"names {culprit['expression']}, though nothing is on a wrong device"
    said = culprit["expression"]
    device = device_name(case, case.header["culprit_device"], namespace)
    problems = []
    if device not in culprit["device"].split(" + "):
        problems.append(f"device {culprit['device']}, expected {device}")
    cell = culprit.get("cell")
    if cell is None and culprit.get("file"):
        cell = cell_that_wrote(case, culprit["file"])
    if cell not in case.right_cells:
        problems.append(f"cell {cell or culprit.get('file')}, expected {sorted(case.right_cells)}")
    strays = candidates(case, device, frames, namespace)
    if not (_same_text(case, said, cell) or matches(culprit, strays, device, frames, namespace)):
        problems.append(f"names {said}, expected {case.header['culprit']}")
    return "; ".join(problems)


def device_name(case: Case, symbol: str, namespace: dict[str, Any]) -> str:
    return str(namespace.get(symbol, symbol)) if symbol in ("DEV", "DEV2", "HOST") else symbol


def cell_that_wrote(case: Case, file: str) -> int | None:
    """User modules are written by a cell of the notebook; that cell stands for the file."""
    stem = file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    return next((n for n, s in case.sources().items() if f"{stem}.py" in s), None)


def candidates(case: Case, device: str, frames: Frames, namespace: dict[str, Any]) -> list[Any]:
    """The objects that the header's expressions name, wherever they can be evaluated."""
    right = case.right_cells
    ordered = [f for f in frames if f[0] in right] + [f for f in frames if f[0] not in right]
    scopes = [{**frame.f_globals, **frame.f_locals} for _, frame in ordered] + [namespace]
    found = []
    for expression in filter(None, case.culprits):
        for scope in scopes:
            known, value = evaluate(expression, scope)
            if known and device in devices(value):
                found.append(value)
                break
    return found


def evaluate(expression: str, scope: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, eval(expression, dict(scope))
    except Exception:  # noqa: BLE001 - it names nothing there
        return False, None


def matches(culprit: dict[str, Any], strays: list[Any], device: str, frames: Frames, namespace: dict[str, Any]) -> bool:
    """Is what the diagnosis names, evaluated where it says, one of the strays?"""
    for scope in _scopes(culprit, frames, namespace):
        known, value = evaluate(culprit["expression"], scope)
        if known and device in devices(value):
            return any(names(value, stray) for stray in strays)
    return False


def names(value: Any, stray: Any) -> bool:
    """`value` is the stray, a view or member of it, or directly holds it."""
    inside = list(walk(stray))
    return any(same(value, item) for item in inside) or any(same(held, stray) for held in members(value))


def _scopes(culprit: dict[str, Any], frames: Frames, namespace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Where the diagnosis says that its expression stands: the live frames of that text, else the workspace."""
    here = []
    for cell, frame in frames:
        in_cell = culprit.get("cell") is not None and cell == culprit["cell"]
        if in_cell or (culprit.get("file") and frame.f_code.co_filename == culprit["file"]):
            here.append(frame)
    for frame in sorted(here, key=lambda f: f.f_code.co_name != culprit.get("function")):
        yield {**frame.f_globals, **frame.f_locals}
    if culprit.get("cell") is not None:
        yield namespace


def _same_text(case: Case, said: str, cell: int | None) -> bool:
    """As the header writes it, or as the right-hand side of the assignment that bound one of its names."""
    right = {normal(expression) for expression in case.culprits}
    if normal(said) in right:
        return True
    source = case.sources().get(cell or 0, "")
    return any(normal(said) == value and target in right for target, value in bindings(source))


def normal(expression: str) -> str:
    try:
        return ast.unparse(ast.parse(expression.strip(), mode="eval"))
    except SyntaxError:
        return "".join(expression.split())


def bindings(source: str) -> Iterator[tuple[str, str]]:
    """(target, value) of each plain assignment in the text of a cell."""
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        tree = ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((ast.unparse(target), ast.unparse(node.value)) for target in node.targets)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield ast.unparse(node.target), ast.unparse(node.value)
