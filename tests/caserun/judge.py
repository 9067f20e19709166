"""The five points of a case, as the README of the given cases states them."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import culprit as point_two
from .case import Case
from .forks import ChildFailedError, in_fork
from .objects import difference, floats
from .session import Session, user_frames


@dataclass
class Verdict:
    """ "" is right, anything else says what is wrong. `points` has the keys 1 to 5."""

    name: str
    points: dict[int, str] = field(default_factory=dict)
    later_fix: int | None = None  # which of fixes 1 to 3 is the first that passes points 4 and 5
    fixes: list[str] = field(default_factory=list)
    diagnosis: dict[str, Any] | None = None
    output: str = ""  # what the failed cell printed

    def right(self, *numbers: int) -> bool:
        return all(self.points.get(n) == "" for n in numbers)


@dataclass
class Failure:
    """The notebook, run on virtual GPUs with the extension loaded, up to the cell that failed."""

    cell: int | None
    error: str = ""
    output: str = ""
    point_one: str = ""
    diagnosis: dict[str, Any] | None = None
    point_two: str = ""
    applied: list[Applied] = field(default_factory=list)


@dataclass
class Applied:
    """One fix, applied to a copy of the live session."""

    title: str
    kind: str
    problem: str
    floats: dict[str, Any] = field(default_factory=dict)
    corrected: dict[int, str] = field(default_factory=dict)  # the notebook after the edits
    edited: bool = False


def judge(case: Case) -> Verdict:
    """All five points; every run in a process of its own."""
    verdict = Verdict(case.name)
    try:
        failure: Failure = in_fork(fail, case, timeout=200)
    except ChildFailedError as failed:
        last = str(failed).strip().splitlines()[-1]
        verdict.points = dict.fromkeys(range(1, 6), f"runner: {last}")
        verdict.output = str(failed)
        return verdict
    verdict.output = failure.output
    verdict.diagnosis = failure.diagnosis
    verdict.points[1] = failure.point_one
    said = failure.diagnosis
    if said is None:
        verdict.points |= dict.fromkeys(range(2, 6), "no diagnosis")
        return verdict
    verdict.points[2] = failure.point_two
    verdict.points[3] = "" if said["cause"] in case.causes else f"says {said['cause']}, expected {case.header['cause']}"
    verdict.points |= {4: "no fix", 5: "no fix"}
    for number, applied in enumerate(failure.applied, 1):
        if verdict.later_fix is not None:
            verdict.fixes.append(f"{applied.kind}: {applied.title}: {applied.problem or 'not judged further'}")
            continue
        four, five = applied_right(case, applied), runs_from_top(case, applied)
        if number == 1:
            verdict.points |= {4: four, 5: five}
        if verdict.later_fix is None and not four and not five:
            verdict.later_fix = number
        verdict.fixes.append(f"{applied.kind}: {applied.title}: {four or 'right'}" + (f"; {five}" if five else ""))
    return verdict


def fail(case: Case) -> Failure:
    """Runs the notebook to its failure, asks for the diagnosis, tries its first three fixes on copies."""
    session = Session(virtual=True, extension=True)
    cell, run = session.run_all(case.sources())
    if cell is None or run is None or run.error is None:
        return Failure(None, point_one="no cell failed")
    failure = Failure(cell, run.error_text, run.output)
    if cell != case.fail_cell:
        failure.point_one = f"cell {cell} failed: {run.error_text[:150]}"
    elif (kind := type(run.error)).__module__.split(".")[0] not in ("builtins", "torch"):
        failure.point_one = f"the error is {kind.__module__}.{kind.__name__}"
    elif "Traceback (most recent call last)" not in run.output or not _shown(run.error, run.output):
        failure.point_one = "its traceback was not shown"

    import ipydevice

    with contextlib.redirect_stdout(io.StringIO()):
        diagnosis = ipydevice.explain()
    if diagnosis is None:
        return failure
    failure.diagnosis = diagnosis.to_dict()
    frames = user_frames(run.error.__traceback__, cell)
    try:
        failure.point_two = in_fork(
            point_two.judge, case, failure.diagnosis["culprit"], frames, dict(session.namespace), timeout=30
        )
    except ChildFailedError as failed:
        failure.point_two = f"runner: {str(failed).strip().splitlines()[-1]}"
    for fix in diagnosis.fixes[:3]:
        try:
            failure.applied.append(in_fork(apply, case, session, fix, timeout=50))
        except ChildFailedError as failed:
            problem = f"cannot be applied: {str(failed).strip().splitlines()[-1]}"
            failure.applied.append(Applied(fix.title, fix.kind, problem))
    return failure


def _shown(error: BaseException, output: str) -> bool:
    first = str(error).strip().splitlines()
    return type(error).__name__ in output and (not first or first[0][:60] in output)


def apply(case: Case, session: Session, fix: Any) -> Applied:
    """As the main button does it: replace the texts, run `setup`, run `rerun`."""
    from ipydevice import fixes

    before = case.notebook()
    with contextlib.redirect_stdout(io.StringIO()):
        cells, rerun = fixes.apply(before, fix)
    applied = Applied(fix.title, fix.kind, "")
    applied.edited = bool([e for e in fix.edits if e.file is None])
    applied.corrected = {c["cell"]: c["source"] for c in cells if c["cell"] is not None}
    for edit in fix.edits:
        if edit.file is not None:
            path = Path(edit.file)
            if path.read_text(encoding="utf-8") != edit.before:
                applied.problem = f"{path.name} is not as the fix takes it to be"
                return applied
            path.write_text(edit.after, encoding="utf-8")
    steps = [(f"cell {item['cell']}", item["source"], item["cell_id"]) for item in map(_plain, rerun)]
    for name, source, cell_id in steps:
        run = session.run(source, cell_id)
        if run.error is not None:
            applied.problem = f"{name} fails afterwards: {run.error_text[:200]}"
            return applied
    expression = case.header["expect_after_fix"]
    if problem := session.expectation(expression):
        applied.problem = f"expectation {problem}"
    applied.floats = floats(expression, session.namespace)
    return applied


def _plain(item: Any) -> dict[str, Any]:
    return dataclasses.asdict(item) if dataclasses.is_dataclass(item) and not isinstance(item, type) else dict(item)


def applied_right(case: Case, applied: Applied) -> str:
    """Point 4."""
    if applied.problem or not case.compare_numbers:
        return applied.problem
    sources = applied.corrected if applied.edited else case.sources()
    try:
        problem, reference = in_fork(from_top, case, sources, False, timeout=60)
    except ChildFailedError as failed:
        return f"on the host: {str(failed).strip().splitlines()[-1]}"
    if problem:
        return f"on the host: {problem}"
    return difference(applied.floats, reference)


def runs_from_top(case: Case, applied: Applied) -> str:
    """Point 5."""
    if not applied.edited:
        return ""
    if not applied.corrected:
        return "nothing was corrected"
    try:
        problem, _ = in_fork(from_top, case, applied.corrected, True, timeout=60)
    except ChildFailedError as failed:
        return f"from the top: {str(failed).strip().splitlines()[-1]}"
    return f"from the top: {problem}" if problem else ""


def from_top(case: Case, sources: dict[int, str], virtual: bool) -> tuple[str, dict[str, Any]]:
    """A fresh shell without the extension: what fails, and the floats of the expectation's names."""
    session = Session(virtual=virtual, extension=False)
    cell, run = session.run_all(sources)
    if run is not None:
        return f"cell {cell} fails: {run.error_text[:200]}", {}
    expression = case.header["expect_after_fix"]
    problem = session.expectation(expression) if virtual else ""
    if problem:
        return f"expectation {problem}", {}
    return "", floats(expression, session.namespace)
