"""Runs the cases in real shells, keeps nothing but the notebooks with their printed errors, and explains those.

Usage: case_texts.py FOLDER...; prints one JSON object a case: name, expression, confidence, right, cause_right, fixes,
and what is wrong with the notebook that `ipydevice fix` makes of it, "" where it runs with the CPU's numbers.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # we fork
sys.path.insert(0, str(Path(__file__).parents[1]))

from caserun import case as cases
from caserun.forks import in_fork, map_in_forks
from caserun.judge import from_top
from caserun.objects import difference

# What the runner of the cases defines before their first cell.
BEFORE = "DEV = 'cuda:0'\nDEV2 = 'cuda:1'\nHOST = 'cpu'"


def executed(case: cases.Case) -> str:
    """The notebook as a front end saves it after its failure, with virtual GPUs and without ipydevice."""
    from caserun.session import Session

    session = Session(virtual=True, extension=False)
    shown: list[tuple[str, str, list[str]]] = []
    session.shell._showtraceback = lambda kind, error, lines: shown.append((kind.__name__, str(error), lines))
    cells = [_cell(0, BEFORE)]
    for number, source in case.sources().items():
        cells.append(_cell(None if shown else number, source))
        if shown:
            continue
        session.run(source, cell_id=f"id-{number}")
        cells[-1]["outputs"] = [
            {"output_type": "error", "ename": name, "evalue": text, "traceback": list(lines)}
            for name, text, lines in shown
        ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


def _cell(number: int | None, source: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": number, "metadata": {}, "outputs": [], "source": source}


def judged(case: cases.Case) -> dict[str, Any]:
    """Right is the name of the stray itself, or of what holds it: there is no object to compare."""
    from ipydevice.cli.explain import explain

    text = executed(case)
    _, found = explain(text, f"{case.name}.ipynb")
    told = found[-1].diagnosis
    named = told.culprit.expression if told.culprit is not None else None
    wanted = [culprit.replace('"', "'") for culprit in case.culprits]
    plain = (named or "").replace('"', "'")
    return {
        "name": case.name,
        "expression": named,
        "confidence": told.confidence,
        "right": named is not None and any(one.startswith(plain) or plain.startswith(one) for one in wanted if one),
        "cause_right": told.cause in case.causes,
        "fixes": len(told.fixes),
        "left_wrong": left_wrong(case, text),
    }


def left_wrong(case: cases.Case, text: str) -> str:
    from ipydevice.cli.fix import fix
    from ipydevice.notebook_files import NotebookFile

    fixed = fix(NotebookFile.read(text, f"{case.name}.ipynb"))
    if not fixed.done:
        return "no safe fix"
    sources = {cell.position: cell.source for cell in fixed.book.cells if cell.position > 0}
    problem, numbers = in_fork(from_top, case, sources, True, timeout=60)
    if problem or not case.compare_numbers:
        return f"{fixed.done[0]}: {problem}" if problem else ""
    problem, reference = in_fork(from_top, case, sources, False, timeout=60)
    wrong = problem or difference(numbers, reference)
    return f"{fixed.done[0]}: {wrong}" if wrong else ""


def main(folders: list[str]) -> None:
    import torch

    from ipydevice import virtual  # noqa: F401  # once, not in each child

    torch.set_num_threads(1)
    todo = cases.collect([Path(folder) for folder in folders])
    for case, answer in zip(todo, map_in_forks(judged, todo), strict=True):
        print(
            json.dumps(answer if isinstance(answer, dict) else {"name": case.name, "failed": str(answer)}), flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
