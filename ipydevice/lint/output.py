"""Reports as text, JSON, GitHub's annotations and SARIF."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import ipydevice
from ipydevice.lint import RULES, SYNTAX, Note, Report

FORMATS = ("text", "json", "github", "sarif")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def render(reports: Sequence[Report], form: str, *, fixing: bool, unread: int = 0) -> str:
    """The reports in one of FORMATS; `unread` files have none."""
    notes = [note for report in reports for note in report.notes]
    if form == "json":
        return json.dumps([_plain(note) for note in notes], indent=2)
    if form == "github":
        return "\n".join(_github(note) for note in notes)
    if form == "sarif":
        return json.dumps(_sarif(notes), indent=2)
    return "\n".join([*map(_line, notes), *_summary(reports, notes, fixing=fixing, unread=unread)])


def _line(note: Note) -> str:
    named = f"{note.rule}:" if note.rule == SYNTAX else f"{note.rule}{' [*]' if note.fixable else ''}"
    return f"{_place(note)}: {named} {note.message}"


def _summary(reports: Sequence[Report], notes: list[Note], *, fixing: bool, unread: int) -> list[str]:
    lines: list[str] = []
    remarks = [remark for report in reports for remark in report.remarks]
    lines += [f"note: {remark}" for remark in remarks]
    fixed = sum(report.fixed for report in reports)
    if fixed:
        lines.append(f"Fixed {fixed} {'problem' if fixed == 1 else 'problems'}.")
    if not notes:
        return lines if unread else [*lines, "All checks passed!"]
    for id_, _ in Counter(note.rule for note in notes if note.rule in RULES).most_common(3):
        lines.append(f"  {id_} {RULES[id_].name}: {RULES[id_].why}")
    lines.append(f"Found {len(notes)} {'problem' if len(notes) == 1 else 'problems'}.")
    fixable = sum(note.fixable for note in notes)
    if fixable and not fixing:
        lines.append(f"[*] {fixable} can be fixed with `--fix`.")
    return lines


def _place(note: Note) -> str:
    cell = f":cell {note.spot.cell}" if note.spot.cell is not None else ""
    return f"{note.file}{cell}:{note.spot.line}:{note.column}"


def _plain(note: Note) -> dict[str, object]:
    return {
        "code": note.rule,
        "name": RULES[note.rule].name if note.rule in RULES else "syntax-error",
        "message": note.message,
        "why": RULES[note.rule].why if note.rule in RULES else "what does not parse cannot be checked",
        "filename": note.file,
        "cell": note.spot.cell,
        "execution_count": note.spot.number,
        "location": {"row": note.spot.line, "column": note.column},
        "end_location": {"row": note.end.line, "column": note.end_column},
        "fixable": note.fixable,
    }


def _github(note: Note) -> str:
    cell = f"cell {note.spot.cell}, line {note.spot.line}: " if note.spot.cell is not None else ""
    # A notebook's lines are not the lines of its JSON, so the annotation is the file's.
    line = "" if note.spot.cell is not None else f",line={note.spot.line},col={note.column},endLine={note.end.line}"
    name = note.file.replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    message = f"{cell}{note.rule} {note.message}".replace("%", "%25").replace("\n", "%0A")
    return f"::error title=ipydevice {note.rule},file={name}{line}::{message}"


def _sarif(notes: list[Note]) -> dict[str, object]:
    rules = [
        {
            "id": rule.id,
            "name": rule.name,
            "shortDescription": {"text": rule.name},
            "fullDescription": {"text": rule.why},
        }
        for rule in RULES.values()
    ]
    results = [
        {
            "ruleId": note.rule,
            "level": "error" if note.rule == SYNTAX else "warning",
            "message": {"text": note.message if note.spot.cell is None else f"cell {note.spot.cell}: {note.message}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": note.file.replace("\\", "/")},
                        "region": {
                            "startLine": note.spot.line,
                            "startColumn": note.column,
                            "endLine": max(note.spot.line, note.end.line),
                            "endColumn": note.end_column,
                        },
                    }
                }
            ],
        }
        for note in notes
    ]
    driver = {"name": "ipydevice", "version": ipydevice.__version__, "rules": rules}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
