"""Explain device errors that were printed or saved: what is on which device, where it was made, how to fix it.

FILE is an executed notebook (its stored errors and its cells are read), a log, or a traceback, as Python,
IPython, Colab, rich, pytest and torchrun print them; "-" is standard input. Nothing in it is run.
The id that a panel shows, such as PT001, tells what is known of that message.
Exit code 0 when a device error was explained, 1 when there is none, 2 for input that cannot be read.

Examples:
  ipydevice explain analysis.ipynb
  torchrun train.py 2>&1 | ipydevice explain -
  ipydevice explain train.log --html > report.html
  ipydevice explain PT001
  ipydevice explain --list
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import dataclass

from ipydevice import notebook_files, postmortem, printing, text_traceback
from ipydevice.cells import CellHistory
from ipydevice.cli import inputs
from ipydevice.diagnosis import Diagnosis
from ipydevice.input_error import InputError
from ipydevice.text_traceback import PastedError

_ID = re.compile(r"[A-Za-z]{2}\d{3,}[a-z]?")  # of a message: PT001, LB017


@dataclass(frozen=True, slots=True)
class Explained:
    """One device error of the input."""

    diagnosis: Diagnosis
    seen_by: tuple[str, ...] = ()


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a notebook, a log or a traceback, - for standard input; or an id"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", action="store_true", help="a page for a browser")
    form.add_argument("--json", action="store_true", help="a list of diagnoses, with the keys of Diagnosis.to_dict()")
    parser.add_argument("--list", action="store_true", help="what can be recognised: meaning, usual cause, remedy")


def run(given: argparse.Namespace) -> int:
    if given.list:
        return _print_catalogue(given.json)
    if given.file is None:
        raise InputError("give a FILE, - for standard input, an id such as PT001, or --list")
    if _ID.fullmatch(given.file) and not os.path.exists(given.file):
        return _print_entry(given.file, given.json)
    text = inputs.read_text(given.file)
    printed, found = explain(text, given.file)
    if given.json:
        print(json.dumps([{**e.diagnosis.to_dict(), "seen_by": list(e.seen_by)} for e in found], indent=1))
    elif given.html:
        print(_page(found, given.file))
    elif found:
        _print(found)
    if not found:
        print(_nothing(given.file, printed), file=sys.stderr)
    return 0 if found else 1


def explain(text: str, name: str) -> tuple[list[PastedError], list[Explained]]:
    """All exceptions that a text shows, and those of them that are device errors, explained."""
    if notebook_files.is_notebook(text, name):
        failures = list(notebook_files.NotebookFile.read(text, name).failures())
    else:
        alone = text_traceback.read(text) or [PastedError("RuntimeError", text.strip())]
        failures = [(error, CellHistory()) for error in alone]
    found = []
    for error, history in failures:
        diagnosis = postmortem.explain_printed(error, history)
        if diagnosis is not None:
            found.append(Explained(diagnosis, error.seen_by))
    return [error for error, _ in failures], found


def _print(found: list[Explained]) -> None:
    for number, explained in enumerate(found):
        if number:
            print()
        if explained.seen_by:
            print(f"{', '.join(explained.seen_by)}:")
        print(printing.panel(explained.diagnosis, color=sys.stdout.isatty()))


def _page(found: list[Explained], name: str) -> str:
    from html import escape

    from ipydevice import show

    panels = "\n".join(show.html(explained.diagnosis) for explained in found) or "<p>No device error.</p>"
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f"<title>ipydevice: {escape(name)}</title></head>\n<body>\n{panels}\n</body>\n</html>"
    )


def _nothing(name: str, printed: list[PastedError]) -> str:
    where = "standard input" if name == "-" else name
    kinds = dict.fromkeys(error.type for error in printed if error.frames)
    seen = f" (it shows {', '.join(kinds)})" if kinds else ""
    memory = any("out of memory" in error.message for error in printed)
    hint = "; `%devices --sort bytes` in a notebook shows what holds the memory" if memory else ""
    if not hint and name.endswith((".py", ".pyi")):
        hint = f"; `ipydevice lint {name}` looks for mistakes in a program"
    return f"no device error in {where}{seen}{hint}"


def _print_entry(id_: str, as_json: bool) -> int:
    from ipydevice.cli import quick_table

    found = quick_table.about(id_)
    if found is None:
        raise InputError(f"there is no message {id_!r}, and no such file; ipydevice explain --list has all ids")
    print(json.dumps(found, indent=1) if as_json else quick_table.about_as_text(found))
    return 0


def _print_catalogue(as_json: bool) -> int:
    from ipydevice.cli import quick_table

    if as_json:
        print(json.dumps(quick_table.as_data(), indent=1))
    else:
        print(quick_table.as_text())
    return 0
