"""Merge what the ranks of a job have told about themselves into one table, with what differs between them marked.

FOLDER holds the files that `ipydevice.write_rank_report(FOLDER, model)` writes in every process of a program that
torchrun or its like has started. Ranks without a file are named. Nothing is run, and torch is not asked.
Exit code 0 when all is well, 1 when something is missing or looks wrong, 2 for a folder without reports.

Examples:
  ipydevice ranks reports/
  ipydevice ranks reports/ --json
  ipydevice ranks reports/ --html > ranks.html
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="by default the current one")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", action="store_true", help="a page for a browser")
    form.add_argument("--json", action="store_true", help="rows, missing ranks and what is wrong, for another program")


def run(given: argparse.Namespace) -> int:
    from ipydevice.ranks import files, table
    from ipydevice.show.front_end import printable

    report = files.merge(given.folder)
    if given.json:
        print(json.dumps(report.to_dict(), indent=1))
    elif given.html:
        title = '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>ipydevice: ranks</title></head>'
        print(f"{title}\n<body>\n{table.html(report)}\n</body>\n</html>")
    else:
        width = shutil.get_terminal_size((120, 24)).columns
        print(printable(table.text(report, width=width), sys.stdout))
    return 0 if report.clean else 1
