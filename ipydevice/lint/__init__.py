"""Device mistakes that a text shows without running: rules for programs and notebooks, no PyTorch needed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ipydevice.fixes.edits import Draft
from ipydevice.lint.document import Document, Spot
from ipydevice.lint.names import Names
from ipydevice.lint.rule import RULES, Change, Problem, Rule
from ipydevice.lint.settings import Settings

__all__ = ["RULES", "SYNTAX", "Document", "Note", "Report", "Settings", "check", "fixed"]

SYNTAX = "SyntaxError"  # in place of a rule's id
_ROUNDS = 10  # of fixing and checking again


@dataclass(frozen=True, slots=True)
class Note:
    """One problem, as it is shown."""

    file: str
    spot: Spot
    column: int  # 1-based, in characters
    end: Spot
    end_column: int
    rule: str  # its id, SYNTAX for what does not parse
    message: str
    fixable: bool


@dataclass(slots=True)
class Report:
    """What was found in one file."""

    file: str
    notes: list[Note] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # cells that were skipped
    fixed: int = 0
    text: str | None = None  # with the fixes in it, where there are any


def check(text: str, name: str, settings: Settings) -> Report:
    """The problems of one file, from the top.

    Syntax errors are among them whatever the settings say: what does not parse is not checked.
    Raises InputError where a notebook's file is no notebook.
    """
    document = Document(text, name)
    notes = [
        Note(name, broken.spot, broken.column, broken.spot, broken.column, SYNTAX, broken.message, fixable=False)
        for broken in document.broken
    ]
    if "torch" in text:  # else nothing here can be on a wrong device
        notes += [_note(document, rule, problem) for rule, problem in _problems(document, settings)]
    return Report(
        name, sorted(notes, key=lambda n: (n.spot.cell or 0, n.spot.line, n.column, n.rule)), document.skipped
    )


def fixed(text: str, name: str, settings: Settings) -> Report:
    """The problems that remain when what can safely be fixed is fixed, and the text with the fixes in it."""
    done = 0
    for _ in range(_ROUNDS):
        if "torch" not in text:
            break
        document = Document(text, name)
        after, count = _fix(document, settings)
        if not count or after == text:
            break
        text, done = after, done + count
    report = check(text, name, settings)
    report.fixed, report.text = done, text if done else None
    return report


def _problems(document: Document, settings: Settings) -> list[tuple[Rule, Problem]]:
    import ipydevice.lint.rules  # noqa: F401  # fills RULES

    names = Names(document)
    found = []
    for rule in RULES.values():
        if not settings.wants(rule, document.name):
            continue
        for problem in rule.check(names):
            if not document.is_silenced(rule.id, _lines(document, problem.node)):
                found.append((rule, problem))
    return found


def _lines(document: Document, node: ast.AST) -> range:
    """The lines on which a ``# noqa`` counts: those of the node and the end of its statement."""
    first: int = node.lineno  # type: ignore[attr-defined]
    statement = document.source.statement(node)
    last = getattr(node, "end_lineno", first)
    if statement is not None and not hasattr(statement, "body"):
        last = statement.end_lineno or last
    return range(first, last + 1)


def _note(document: Document, rule: Rule, problem: Problem) -> Note:
    node = problem.node
    line: int = node.lineno  # type: ignore[attr-defined]
    last: int = node.end_lineno or line  # type: ignore[attr-defined]
    source = document.source
    return Note(
        file=document.name,
        spot=document.spot(line),
        column=source.column(line, node.col_offset) + 1,  # type: ignore[attr-defined]
        end=document.spot(last),
        end_column=source.column(last, node.end_col_offset or 0) + 1,  # type: ignore[attr-defined]
        rule=rule.id,
        message=problem.message,
        fixable=problem.change is not None and _edited(document, problem) is not None,
    )


def _edited(document: Document, problem: Problem) -> str | None:
    """The whole text with this one fix in it; None where it cannot be made faithfully."""
    if problem.change is None:
        return None
    draft = Draft(document.source)
    problem.change(draft)
    return draft.text


def _fix(document: Document, settings: Settings) -> tuple[str, int]:
    """The file's text with as many fixes as fit into it together."""
    made: list[Change] = []
    text: str | None = None
    for _, problem in _problems(document, settings):
        if problem.change is None or _edited(document, problem) is None:
            continue
        draft = Draft(document.source)
        for change in (*made, problem.change):
            change(draft)
        if draft.text is not None:  # two changes of one place: the second waits for the next round
            made.append(problem.change)
            text = draft.text
    if text is None:
        return document.text, 0
    if document.book is None:
        return text, len(made)
    return document.book.with_sources(document.sources(text)).text, len(made)
