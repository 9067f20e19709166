"""The failing notebooks, each with its failing cell checked: it runs to its end, with the mistake and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from caserun.case import Case, collect
from caserun.forks import map_in_forks
from caserun.session import Session

CASES = Path(__file__).parents[1] / "cases"

# No second attempt helps: backward in C++, a worker's process, a device that is not there, weights that are not there.
ENDS = {
    "161", "163", "174", "175", "176", "182", "198",
}  # fmt: skip
# More than one statement forgets a move, so that more than one has to be mended.
SEVERAL = {"102": 2, "146": 2, "162": 2, "169": 2, "172": 2, "173": 3, "210": 2}


def checked(case: Case) -> dict[str, Any]:
    session = Session(virtual=True, extension=True)
    for number, source in case.sources().items():
        if number == case.fail_cell:
            break
        session.run(source, cell_id=f"id-{number}")
    run = session.run(f"%%devicecheck -o report\n{case.sources()[case.fail_cell]}", cell_id=f"id-{case.fail_cell}")
    report = session.namespace.get("report")
    if report is None:
        return {"problem": run.output[-300:]}
    return {
        "error": run.error_text,
        "causes": [finding.diagnosis.cause for finding in report.findings],
        "repaired": [finding.repaired for finding in report.findings],
        "notes": report.notes,
    }


def problem_of(case: Case, found: Any) -> str:
    number = case.header["id"]
    if not isinstance(found, dict) or "problem" in found:
        return f"no report: {found}"
    if found["notes"]:
        return f"ipydevice failed: {found['notes']}"
    if bool(found["error"]) != (number in ENDS) or all(found["repaired"]) == bool(found["error"]):
        return f"ended with {found['error'][:100] or 'nothing'}, repaired: {found['repaired']}"
    if len(found["causes"]) != SEVERAL.get(number, 1):
        return f"{len(found['causes'])} findings: {found['causes']}"
    return ""


@pytest.mark.slow
def test_failing_cells_run_to_their_end() -> None:
    cases = collect([CASES])
    assert len(cases) > 100
    found = map_in_forks(checked, cases)
    problems = {case.name: said for case, one in zip(cases, found, strict=True) if (said := problem_of(case, one))}
    assert problems == {}
