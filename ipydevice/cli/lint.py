"""Find device mistakes in programs and notebooks before they run. Nothing is run, PyTorch is not needed.

`# noqa: IPD004` on a line silences a rule there; [tool.ipydevice.lint] in pyproject.toml has select, extend-select,
ignore, exclude and per-file-ignores. Exit code 0 when nothing is found, 1 when something is, a syntax error too,
2 for wrong input and files that cannot be read.

Examples:
  ipydevice lint .
  ipydevice lint train.py analysis.ipynb --fix
  ipydevice lint src --select IPD004,IPD005 --output-format github
  ipydevice lint --list
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from ipydevice import lint, notebook_files
from ipydevice.cli import inputs
from ipydevice.input_error import InputError
from ipydevice.lint import Report, Settings, files, output
from ipydevice.lint.rules import RULES
from ipydevice.lint.settings import require_known

MANY = 64  # files: from here on several processes and a progress bar


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or folders; default: this folder")
    parser.add_argument("--fix", action="store_true", help="make the fixes that are safe, marked [*]")
    parser.add_argument(
        "--select", metavar="IDS", help="only these rules; ids or their beginnings, commas between; ALL"
    )
    parser.add_argument("--extend-select", metavar="IDS", help="these rules too")
    parser.add_argument("--ignore", metavar="IDS", help="not these rules")
    parser.add_argument("--output-format", choices=output.FORMATS, default="text")
    parser.add_argument("--exit-zero", action="store_true", help="exit code 0 though something is found")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes; default: one for each processor, from many files on"
    )
    parser.add_argument("--list", action="store_true", help="the rules: id, name, why")


def run(given: argparse.Namespace) -> int:
    if given.list:
        _print_rules()
        return 0
    if given.jobs is not None and given.jobs < 1:
        raise InputError(f"--jobs takes a number of processes from 1 on, and is {given.jobs}")
    found = files.find(given.paths or ["."])
    asked = {str(Path(path)) for path in given.paths}
    settings = {path: _settings(path.parent, given) for path in found}
    wanted = [path for path in found if str(path) in asked or not settings[path].excludes(path)]
    reports, failed = [], []
    for report in _reports(wanted, settings, fix=given.fix, jobs=given.jobs):
        if isinstance(report, str):
            failed.append(report)
        else:
            reports.append(report)
    written = output.render(reports, given.output_format, fixing=given.fix, unread=len(failed))
    if written:
        print(written)
    for line in failed:
        print(f"ipydevice lint: {line}", file=sys.stderr)
    if failed:
        return 2
    return int(any(report.notes for report in reports) and not given.exit_zero)


def _settings(folder: Path, given: argparse.Namespace) -> Settings:
    near = _near(str(folder))
    return replace(
        near,
        select=_ids(given.select, "--select") or near.select,
        extend=_ids(given.extend_select, "--extend-select") or near.extend,
        ignore=_ids(given.ignore, "--ignore") or near.ignore,
    )


def _ids(text: str | None, option: str) -> tuple[str, ...]:
    ids = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    require_known(ids, option)
    return ids


_KNOWN: dict[str, Settings] = {}


def _near(folder: str) -> Settings:
    if folder not in _KNOWN:
        _KNOWN[folder] = Settings.near(Path(folder))
    return _KNOWN[folder]


def _reports(
    paths: list[Path], settings: dict[Path, Settings], *, fix: bool, jobs: int | None
) -> Iterator[Report | str]:
    work = [(path, settings[path]) for path in paths]
    jobs = jobs or (min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8))
    if len(work) < MANY or jobs == 1:
        yield from _shown(map(partial(_one, fix), work), len(work))
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from _shown(pool.map(partial(_one, fix), work, chunksize=8), len(work))


def _shown(reports: Iterable[Report | str], total: int) -> Iterator[Report | str]:
    """The same reports, with a bar on a terminal where there are many."""
    bar = total >= MANY and sys.stderr.isatty()
    for number, report in enumerate(reports, 1):
        if bar and (number % 8 == 0 or number == total):
            done = 40 * number // total
            print(f"\r[{'#' * done}{'.' * (40 - done)}] {number}/{total}", end="", file=sys.stderr, flush=True)
        yield report
    if bar:
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def _one(fix: bool, work: tuple[Path, Settings]) -> Report | str:
    """The report on one file, or the line that says why there is none."""
    path, settings = work
    try:
        raw = inputs.read_bytes(path)
        if not raw.strip():
            return Report(str(path))
        decoded = inputs.decoded_notebook if path.suffix == ".ipynb" else inputs.decoded_program
        text = decoded(raw, str(path))
        if not fix:
            return lint.check(text, str(path), settings)
        report = lint.fixed(text, str(path), settings)
        if report.text is not None:
            _write(path, report.text, raw)
            report.text = None
        return report
    except InputError as error:
        return str(error)
    except RecursionError:
        return f"{path}: nested too deeply to be read"


def _write(path: Path, text: str, before: bytes) -> None:
    encoding = "utf-8" if path.suffix == ".ipynb" else inputs.program_encoding(before, str(path))
    if before.startswith(b"\xef\xbb\xbf"):
        encoding = "utf-8-sig"
    try:
        notebook_files.write(path, text.encode(encoding))
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from None


def _print_rules() -> None:
    for rule in sorted(RULES.values(), key=lambda rule: rule.id):
        advice = "  (advice: only where selected)" if rule.opt_in else ""
        print(f"{rule.id} {rule.name}{advice}\n    {rule.why}")
