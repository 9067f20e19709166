"""Are the cases themselves right? Everything here goes without the diagnosis."""

from __future__ import annotations

import ast
from typing import Any

from .case import Case
from .culprit import bindings, candidates, device_name, normal
from .forks import ChildFailedError, in_fork
from .judge import from_top
from .objects import difference, floats
from .session import Session, user_frames


def check(case: Case) -> list[str]:
    """What is wrong with a case; empty where it is sound."""
    problems = _header(case)
    try:
        problems += in_fork(_fails_and_is_mended, case, timeout=90)
    except ChildFailedError as failed:
        problems.append("run: " + "\n".join(str(failed).splitlines()[-4:]))
    return problems


def _header(case: Case) -> list[str]:
    head, problems = case.header, []
    for key in ("culprit_cell", "origin_cell", "fail_cell"):
        if not 1 <= head[key] <= len(case.cells):
            problems.append(f"{key} is {head[key]}, there are {len(case.cells)} cells")
            return problems
    if head["origin"] not in case.cells[head["origin_cell"] - 1]:
        problems.append("origin is not in origin_cell")
    if not any(_in_text(c, case.cells[head["culprit_cell"] - 1]) for c in case.culprits):
        problems.append("no culprit stands in culprit_cell")
    if not all(case.cells):
        problems.append("an empty cell")
    return problems


def _in_text(expression: str, source: str) -> bool:
    return "".join(expression.split()) in "".join(source.split())


def corrected(case: Case) -> dict[int, str]:
    sources = case.sources()
    for fix in case.header.get("ref_fix", []):
        if fix["op"] == "replace":
            if sources[fix["cell"]].count(fix["old"]) != 1:
                raise ValueError(f"{fix['old']!r} does not stand once in cell {fix['cell']}")
            sources[fix["cell"]] = sources[fix["cell"]].replace(fix["old"], fix["new"])
    return sources


def _fails_and_is_mended(case: Case) -> list[str]:
    session = Session(virtual=True, extension=False)
    cell, run = session.run_all(case.sources())
    if cell is None or run is None or run.error is None:
        return ["no cell failed"]
    if cell != case.fail_cell:
        return [f"cell {cell} failed, not {case.fail_cell}: {run.error_text}\n{run.output[-1500:]}"]
    problems = []
    frames = user_frames(run.error.__traceback__, cell)
    seen = in_fork(_culprit_seen, case, frames, session.namespace)
    if not seen:
        problems.append("no culprit can be evaluated, nor stands in a right cell as the value of one")
    problems += in_fork(_mend, case, session)
    return problems


def _culprit_seen(case: Case, frames: Any, namespace: dict[str, Any]) -> bool:
    device = device_name(case, case.header["culprit_device"], namespace)
    if candidates(case, device, frames, namespace):
        return True
    right = {normal(c) for c in case.culprits}
    written = {
        ast.unparse(node)
        for source in case.cells
        for value in [v for pair in bindings(source) for v in pair]
        for node in ast.walk(ast.parse(value))
        if isinstance(node, ast.expr)
    }
    return bool(right & written) or any(_in_text(c, "".join(case.cells)) for c in case.culprits)


def _mend(case: Case, session: Session) -> list[str]:
    head = case.header
    fixes = head.get("ref_fix", [])
    if not fixes:
        return ["no ref_fix"]
    problems: list[str] = []
    edited = any(fix["op"] == "replace" for fix in fixes)
    sources = corrected(case)
    for fix in fixes:
        if fix["op"] == "run" and (error := session.run(fix["code"]).error_text):
            return [f"ref_fix: {error}"]
    for number in head.get("rerun", {}).get("cells", [case.fail_cell]):
        run = session.run(sources[number], f"id-{number}")
        if run.error is not None:
            return [f"after ref_fix cell {number}: {run.error_text}\n{run.output[-1500:]}"]
    if problem := session.expectation(head["expect_after_fix"]):
        problems.append(f"after ref_fix: {problem}")
    if not case.compare_numbers:
        return problems
    problem, reference = in_fork(from_top, case, sources, False)
    if problem:
        return [*problems, f"on the host: {problem}"]
    mended = floats(head["expect_after_fix"], session.namespace)
    if not mended:
        problems.append("note: the expectation names no floats, nothing is compared")
    if problem := difference(mended, reference):
        problems.append(f"numbers: {problem}")
    if edited:
        problem, mended = in_fork(from_top, case, sources, True)
        if problem or (problem := difference(mended, reference)):
            problems.append(f"from the top: {problem}")
    return problems
