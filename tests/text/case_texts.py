"""Runs the cases in real shells, keeps nothing but the notebooks with their printed errors, and explains those.

Usage: case_texts.py FOLDER...; prints one JSON object a case: name, expression, confidence, right, cause_right, fixes.
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
from caserun.forks import map_in_forks

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

    _, found = explain(executed(case), f"{case.name}.ipynb")
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
    }


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
