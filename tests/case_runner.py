"""Runs the failing notebooks and prints what ipydevice gets right.

    python tests/case_runner.py [folder or file ...] [-k PATTERN] [-v] [--check-cases]

Without folders: tests/cases, its folder blind, and those in the environment variable IPYDEVICE_CASES (as in PATH).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import pkgutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from caserun.case import Case, collect  # noqa: E402
from caserun.forks import map_in_forks  # noqa: E402

OWN = Path(__file__).parent / "cases"
BLIND = OWN / "blind"  # written by somebody who had not read the code


def folders() -> list[Path]:
    given = [Path(f) for f in os.environ.get("IPYDEVICE_CASES", "").split(os.pathsep) if f]
    return [OWN, BLIND, *(f for f in given if f.resolve() != OWN.resolve())]


def prepare() -> None:
    """Imports what every child needs, once; the children are forks of this process."""
    import IPython.core.interactiveshell  # noqa: F401
    import numpy  # noqa: F401
    import torch

    import ipydevice

    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(ipydevice.__path__, "ipydevice."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def run_cases(cases: list[Case], parallel: int = 2) -> list:
    """A Verdict for each case."""
    from caserun.judge import Verdict, judge

    prepare()
    verdicts = []
    with scratch():
        for case, answer in zip(cases, map_in_forks(judge, cases, parallel), strict=True):
            if isinstance(answer, Exception):
                answer = Verdict(case.name, dict.fromkeys(range(1, 6), f"runner: {answer}"))
            verdicts.append(answer)
    return verdicts


@contextlib.contextmanager
def scratch() -> Iterator[None]:
    """What the notebooks write goes into one folder, and with it."""
    with tempfile.TemporaryDirectory(prefix="cases-", ignore_cleanup_errors=True) as path:
        os.environ["CASES_TMP"] = path
        try:
            yield
        finally:
            del os.environ["CASES_TMP"]


def table(cases: list[Case], verdicts: list, verbose: bool = False) -> str:
    lines = [f"{'case':44} 1 2 3 4 5  said | expected"]
    for case, verdict in zip(cases, verdicts, strict=True):
        marks = " ".join("+" if verdict.points.get(n) == "" else "-" for n in range(1, 6))
        said = verdict.diagnosis or {}
        culprit = said.get("culprit") or {}
        place = culprit.get("cell") or culprit.get("file")
        words = f"{culprit.get('expression')} on {culprit.get('device')} [{place}] {said.get('cause')}"
        head = case.header
        wanted = f"{head['culprit']} on {head['culprit_device']} [{head['culprit_cell']}] {head['cause']}"
        lines.append(f"{verdict.name[:44]:44} {marks}  {words if said else '(no diagnosis)'} | {wanted}")
        for number, problem in verdict.points.items():
            if problem and not (number > 1 and problem == "no diagnosis"):
                lines.append(f"{'':6}{number}: {problem}")
        if verdict.later_fix and verdict.later_fix > 1:
            lines.append(f"{'':6}fix {verdict.later_fix} is right")
        if verbose:
            lines += [f"{'':6}fix {n}: {text}" for n, text in enumerate(verdict.fixes, 1)]
            lines += [verdict.output, json.dumps(said, indent=1, default=str)]
    return "\n".join(lines)


def totals(verdicts: list) -> dict[str, int]:
    return {
        "cases": len(verdicts),
        "point 1": sum(v.right(1) for v in verdicts),
        "point 2": sum(v.right(2) for v in verdicts),
        "point 3": sum(v.right(3) for v in verdicts),
        "points 1-3": sum(v.right(1, 2, 3) for v in verdicts),
        "points 4-5": sum(v.right(4, 5) for v in verdicts),
        "one of three fixes": sum(v.later_fix is not None for v in verdicts),
        "all five": sum(v.right(1, 2, 3, 4, 5) for v in verdicts),
        "wrong and certain": sum(
            not v.right(2, 3) and (v.diagnosis or {}).get("confidence") == "certain" for v in verdicts
        ),
    }


def check_cases(cases: list[Case]) -> int:
    from caserun.check import check

    prepare()
    bad = 0
    with scratch():
        for case, problems in zip(cases, map_in_forks(check, cases), strict=True):
            problems = [str(problems)] if isinstance(problems, Exception) else problems
            sound = all(p.startswith("note:") for p in problems)
            bad += not sound
            print(f"{case.name:50} {'sound' if sound else 'NOT SOUND'}", *problems, sep="\n      " if problems else "")
    print(f"{len(cases)} cases, {bad} not sound")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("-k", dest="pattern", default="", help="regular expression on the names of the cases")
    parser.add_argument("-v", dest="verbose", action="store_true", help="print outputs, fixes and whole diagnoses")
    parser.add_argument("--wrong", action="store_true", help="print only the cases of which something is wrong")
    parser.add_argument("-j", dest="parallel", type=int, default=2)
    parser.add_argument("--check-cases", action="store_true", help="check the cases themselves, without the diagnosis")
    parser.add_argument("--json", type=Path, help="also write the verdicts to this file")
    options = parser.parse_args()
    cases = collect(options.folders or folders(), options.pattern)
    if not cases:
        parser.error("no case found: give a folder of NNN_name.py files")
    if options.check_cases:
        return 1 if check_cases(cases) else 0
    start = time.perf_counter()
    verdicts = run_cases(cases, options.parallel)
    shown = [(c, v) for c, v in zip(cases, verdicts, strict=True) if not options.wrong or not v.right(1, 2, 3, 4, 5)]
    print(table([c for c, _ in shown], [v for _, v in shown], options.verbose))
    print(*(f"{name}: {count}" for name, count in totals(verdicts).items()), sep="\n")
    print(f"{time.perf_counter() - start:.0f} s")
    if options.json:
        options.json.write_text(
            json.dumps({"totals": totals(verdicts), "verdicts": [vars(v) for v in verdicts]}, default=str, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
