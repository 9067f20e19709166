"""The errors of many engines as one diagnosis, in the words and cells of the notebook that sent them their code."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from ipydevice.cells import Cell, CellHistory
from ipydevice.diagnosis import Diagnosis, Edit, Fix, Place, Rerun
from ipydevice.language import Sentence, in_every_language, say
from ipydevice.ranks import engines
from ipydevice.ranks.across import CARD, on_any_card
from ipydevice.ranks.table import ranks_text

WAIT = 3.0  # seconds for engines that have just failed, and so are idle, to tell their diagnosis
_CELL = r"In \[(\d+)\]"
_LINE: Sentence = "{where}, line {line}"


class Failure(NamedTuple):
    """What one engine has raised."""

    engine: int
    text: str  # class and first line of the exception
    diagnosis: Diagnosis | None  # None: no device error
    cells: dict[int, str]  # the engine's own cells, by number

    @property
    def headline(self) -> str:
        return self.text if self.diagnosis is None else self.diagnosis.headline


class MergedPostMortem:
    """Of an error of ipyparallel's: what a `PostMortem` is of an error of this process."""

    finding = None  # the engines' objects are not here

    def __init__(self, told: Diagnosis) -> None:
        self._told = told

    @property
    def headline(self) -> str:
        """One line: which engines, and what is where."""
        return self._told.headline

    def finish(self) -> Diagnosis:
        """The diagnosis that the most engines share, with what the others say as notes."""
        return self._told


def begin(exc: Any, history: CellHistory, namespace: dict[str, Any]) -> MergedPostMortem | None:
    """Start on an error of ipyparallel's; None where no engine has raised a device error."""
    failures = _failures(exc, namespace)
    same: dict[tuple[str, int | None, str], list[Failure]] = defaultdict(list)
    others: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        d = failure.diagnosis
        if d is None:
            others[failure.text].append(failure)
        else:
            same[on_any_card(d.headline), d.failed.line, d.cause].append(failure)
    if not same:
        return None
    first, *rest = sorted(same.values(), key=len, reverse=True)
    told = _of_client(first[0], history)
    notes = [f"{_engines(group)}: {group[0].headline}" for group in rest]
    notes += [f"{_engines(group)}: {text}" for text, group in others.items()]
    if len({failure.headline for failure in first}) > 1:
        notes.insert(0, say("devices and cards are those of engine {engine}; each has its own", engine=first[0].engine))
        told = replace(told, fixes=tuple(fix for fix in told.fixes if not _names_a_card(fix)))
    headline = f"{_engines(first)}: {told.headline}"
    return MergedPostMortem(replace(told, headline=headline, notes=(*notes, *told.notes)))


def _engines(group: list[Failure]) -> str:
    return ranks_text(tuple(failure.engine for failure in group)).replace("rank", "engine")


def _names_a_card(fix: Fix) -> bool:
    """Whether the fix writes the number of a card into code that all engines run."""
    texts = [(edit.before, edit.after) for edit in fix.edits] + [("", fix.setup or "")]
    return any(len(CARD.findall(after)) > len(CARD.findall(before)) for before, after in texts)


def _failures(exc: Any, namespace: dict[str, Any]) -> list[Failure]:
    """What each engine says itself of its last error, in the order of the engines; else what its traceback shows."""
    raised = _raised(exc)
    ran = [engine for engine, *_, method in raised if method == "execute"]  # then it is the engine's last error
    told = engines.ask(engines.client_in(namespace), ran, own_error, timeout=WAIT)
    found = []
    for engine, kind, value, trace, _ in sorted(raised):
        diagnosis, cells = told.get(engine, (None, {}))
        if diagnosis is None or diagnosis.message.partition("\n")[0] not in value:
            diagnosis = _of_text(trace)
        text = f"{kind}: {value}".partition("\n")[0]
        found.append(Failure(engine, text, diagnosis, cells))
    return found


def _raised(exc: Any) -> list[tuple[int, str, str, str, str]]:
    """Engine, class, text, traceback and kind of task of each error in one of ipyparallel's (ipyparallel/error.py)."""
    exc = getattr(exc, "original_error", exc)  # of one that `%px` has printed already
    errors = getattr(exc, "elist", None)
    if errors is None:  # a RemoteError of one engine, or trouble of the client's own
        errors = [(exc.ename, exc.evalue, exc.traceback, exc.engine_info)] if hasattr(exc, "ename") else []
    found = []
    for kind, value, trace, info in errors:
        known = info if isinstance(info, dict) else {}
        engine, method = known.get("engine_id"), known.get("method")
        found.append((engine if isinstance(engine, int) else -1, str(kind), str(value), str(trace or ""), str(method)))
    return found


def own_error() -> tuple[Diagnosis | None, dict[int, str]]:
    """On an engine: the diagnosis of its last error, and its cells by number."""
    from ipydevice import session

    shell = session.current_shell()
    cells = {} if shell is None else dict(enumerate(shell.history_manager.input_hist_raw))
    return session.explain(), cells


def _of_text(trace: str) -> Diagnosis | None:
    from ipydevice import postmortem, text_traceback

    printed = text_traceback.read(trace)
    return postmortem.explain_printed(printed[-1]) if printed else None


def _of_client(failure: Failure, history: CellHistory) -> Diagnosis:
    """The diagnosis with the client's cells in the place of the engine's, and fixes that the client can apply."""
    assert failure.diagnosis is not None
    cells = _Cells(failure.cells, history)
    d: Diagnosis = cells.translated(failure.diagnosis)
    translated = [cells.fix(fix) for fix in failure.diagnosis.fixes]
    sent = cells.sent(failure.diagnosis.failed.cell)
    return replace(
        d,
        fixes=tuple(fix for fix in translated if fix is not None),
        failed_cell_source=d.failed_cell_source if sent is None else sent.raw,
    )


class _Cells:
    """Which cell of the client sent an engine's cell: the last ``%%px`` with that text."""

    def __init__(self, texts: dict[int, str], history: CellHistory) -> None:
        self._texts = texts
        self._history = history

    def sent(self, number: int | None) -> Cell | None:
        """The client's cell for the engine's In [number]."""
        text = self._texts.get(number, "") if number is not None else ""
        cells = reversed(self._history.cells)
        return next((cell for cell in cells if text.strip() and _body(cell.raw)[1].strip() == text.strip()), None)

    def translated(self, value: Any) -> Any:
        """The same value with the client's numbers in every place and text; fixes are left out."""
        if isinstance(value, str):
            return _places().sub(self._in_words, value)
        if isinstance(value, Place):
            cell = self.sent(value.cell)
            if cell is None:
                return value
            line = None if value.line is None else value.line + _shift(cell.raw)
            return replace(value, cell=cell.number, cell_id=cell.cell_id, line=line)
        if isinstance(value, tuple):
            return tuple(map(self.translated, value))
        if is_dataclass(value) and not isinstance(value, type | Fix):
            told = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in ("fixes", "message")}
            return replace(value, **{name: self.translated(part) for name, part in told.items()})
        return value

    def _in_words(self, found: re.Match[str]) -> str:
        number, *lines = [int(part) for part in found.groups() if part is not None]
        cell = self.sent(number)
        if cell is None:
            return found[0]
        where = f"In [{cell.number}]"
        return say(_LINE, where=where, line=lines[0] + _shift(cell.raw)) if lines else where

    def fix(self, fix: Fix) -> Fix | None:
        """The fix as edits of the client's cells; None where one of them is not the client's."""
        edits = tuple(edit for edit in map(self._edit, fix.edits) if edit is not None)
        reruns = tuple(rerun for rerun in map(self._rerun, fix.rerun) if rerun is not None)
        if len(edits) < len(fix.edits) or len(reruns) < len(fix.rerun):
            return None
        setup = f"%%px\n{fix.setup}" if fix.setup else fix.setup
        words = {"title": self.translated(fix.title), "note": self.translated(fix.note)}
        return replace(fix, edits=edits, rerun=reruns, setup=setup, **words)

    def _edit(self, edit: Edit) -> Edit | None:
        if edit.file is not None:
            return edit
        cell = self.sent(edit.cell)
        if cell is None or edit.before.strip() != _body(cell.raw)[1].strip():
            return None
        return replace(
            edit, cell=cell.number, cell_id=cell.cell_id, before=cell.raw, after=_sent_as(cell.raw, edit.after)
        )

    def _rerun(self, rerun: Rerun) -> Rerun | None:
        cell = self.sent(rerun.cell)
        return None if cell is None else Rerun(cell.number, cell.cell_id, _sent_as(cell.raw, rerun.source))


@cache
def _places() -> re.Pattern[str]:
    """How a text names a cell or one of its lines, in whatever language the engine speaks."""
    lines = (re.escape(template) for template in in_every_language(_LINE))
    known = [one.replace(r"\{where\}", _CELL).replace(r"\{line\}", r"(\d+)") for one in lines]
    return re.compile("|".join([*known, _CELL]))


def _body(raw: str) -> tuple[str, str]:
    """The line that sends a cell to the engines, and what it sends; ("", "") for other cells."""
    first, _, below = raw.lstrip().partition("\n")
    if first.startswith("%%px"):
        return first, below
    if first.startswith("%px ") and not below.strip():
        return "%px", first.removeprefix("%px ")
    return "", ""


def _shift(raw: str) -> int:
    """Lines of the client's cell above the first that it sends."""
    return 1 if _body(raw)[0].startswith("%%px") else 0


def _sent_as(raw: str, source: str) -> str:
    """`source` sent by the same magic as `raw` was."""
    head = _body(raw)[0]
    if head == "%px" and "\n" not in source.strip():
        return f"%px {source.strip()}"
    return f"{'%%px' if head == '%px' else head}\n{source}"
