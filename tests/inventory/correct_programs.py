"""Run the mended notebooks of the case folders; print each remark that the table makes after a cell.

    python tests/inventory/correct_programs.py FOLDER... [--match PATTERN]

Exit status 1 where anything is called odd in a program that is right.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

import torch  # noqa: E402
from caserun.case import Case, collect  # noqa: E402
from caserun.check import corrected  # noqa: E402
from caserun.forks import map_in_forks  # noqa: E402
from caserun.session import Session  # noqa: E402


def remarks(case: Case) -> list[str]:
    """What the table calls odd after each cell of the mended notebook."""
    from ipydevice.listing import list_namespace

    session = Session(virtual=True, extension=False)
    said: list[str] = []
    texts: list[str] = []
    for number, source in corrected(case).items():
        run = session.run(source)
        if run.error is not None:
            return [*said, f"cell {number} failed: {run.error_text}"]
        texts.append(session.shell.transform_cell(source))
        rows = list_namespace(session.namespace, cells=texts).rows
        said += [f"In [{number}] {row.name} ({row.kind}, {row.device}): {row.odd}" for row in rows if row.odd]
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--match", default="")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    # A live repair leaves the notebook as it was; only edited ones are right from the top.
    cases = [
        case
        for case in collect(asked.folders, asked.match)
        if all(fix["op"] == "replace" for fix in case.header["ref_fix"])
    ]
    wrong = 0
    for case, said in zip(cases, map_in_forks(remarks, cases), strict=True):
        if said:
            wrong += 1
            print(case.name, *(said if isinstance(said, list) else [said]), sep="\n    ")
    print(f"{len(cases)} programs, {wrong} with a remark")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
