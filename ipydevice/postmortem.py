"""From an exception to a `Diagnosis`: joins the stages and guards each of them.

`begin` finds out whether the exception is a device error at all and names the culprit;
`PostMortem.finish` adds origin, cause, fixes and the table.  What fails in a later stage
costs that part of the diagnosis and a note, never the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipydevice.cells import CellHistory
from ipydevice.diagnosis import Diagnosis, Fix, Row
from ipydevice.language import Sentence, joined, say

if TYPE_CHECKING:
    from ipydevice.diagnose import Analysis
    from ipydevice.diagnose.culprit import Settled
    from ipydevice.diagnose.finding import Finding
    from ipydevice.messages import Mismatch
    from ipydevice.ranks.merged import MergedPostMortem
    from ipydevice.text_frames import PastedFrame
    from ipydevice.text_traceback import PastedError

_OF_ENGINES = "ipyparallel.error"
_TOOLBOX = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toolbox") + os.sep
FROM_TEXT: Sentence = "read from the text alone, nothing was run: devices follow from the code shown"


def begin(
    exc: BaseException,
    history: CellHistory | None = None,
    namespace: dict[str, Any] | None = None,
    settled: Settled | None = None,
) -> PostMortem | MergedPostMortem | None:
    """Start on an exception; None when it is no device error. What is `settled` is not named as its culprit."""
    if type(exc).__module__ == _OF_ENGINES:
        from ipydevice.ranks import merged

        return merged.begin(exc, history or CellHistory(), namespace or {})

    from ipydevice import messages

    found = messages.find(exc)
    if found is None:
        return None
    raised, mismatch = found
    if _is_of_toolbox(raised):
        return None
    return PostMortem(raised, mismatch, history or CellHistory(), namespace, settled)


def _is_of_toolbox(error: BaseException) -> bool:
    """Whether one of our own tools has raised it: ``check_same_device`` and the like say themselves what is where."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_TOOLBOX)


def explain_printed(error: PastedError, history: CellHistory | None = None) -> Diagnosis | None:
    """The Diagnosis of an error that a text shows; None when it is no device error. Nothing of it is run.

    `history` holds the cells of the notebook that the text is from, where they are at hand.
    """
    from ipydevice import messages, text_traceback

    top, printed = text_traceback.exception_of(error)
    found = messages.find(top)
    if found is None:
        return None
    raised, mismatch = found
    return _of_text(mismatch, printed[id(raised)].frames, history, [])


def is_mended(error: PastedError, history: CellHistory) -> bool:
    """Whether the cells, as they are by now, bring together what a printed error found apart."""
    from ipydevice import messages, text_traceback
    from ipydevice.diagnose import foresee

    top, printed = text_traceback.exception_of(error)
    found = messages.find(top)
    return found is not None and foresee.is_mended(found[1], printed[id(found[0])].frames, history)


def foreseen(error: PastedError, history: CellHistory) -> Iterator[Diagnosis]:
    """What would fail behind a printed error once it is mended, as far as the cells tell; each with its fixes."""
    from ipydevice import messages, text_traceback
    from ipydevice.diagnose import foresee
    from ipydevice.diagnose.describe import describe
    from ipydevice.fixes.from_text import propose_from_text

    top, printed = text_traceback.exception_of(error)
    found = messages.find(top)
    accelerator = next((name for name in found[1].devices if name not in ("cpu", "meta")), None) if found else None
    if found is None or accelerator is None or found[1].kind != "placement":
        return
    mismatch = messages.Mismatch(id="", family="", text="", devices=(accelerator, "cpu"))
    for finding in foresee.foresee(mismatch, printed[id(found[0])].frames, history):
        yield describe(finding, propose_from_text(finding), [], [say(FROM_TEXT)])


def _of_text(
    mismatch: Mismatch, frames: Sequence[PastedFrame], history: CellHistory | None, notes: list[str]
) -> Diagnosis:
    """What a text tells: by the user's lines where it shows some, else by the message alone."""
    from ipydevice.diagnose import from_text
    from ipydevice.diagnose.describe import describe, describe_text, place
    from ipydevice.fixes.from_text import propose_from_text

    try:
        finding = from_text.analyse(mismatch, frames, history)
        if finding is None or (finding.stray is None and mismatch.kind != "availability"):
            if finding is None:
                return describe_text(mismatch, notes)
            told = describe_text(mismatch, [*_to_compare(finding), *notes])
            return replace(told, failed=place(finding.failed))
        return describe(finding, propose_from_text(finding), [], [*notes, say(FROM_TEXT)])
    except Exception as error:
        if os.environ.get("IPYDEVICE_DEBUG"):
            raise
        failed = say(
            "ipydevice failed while reading the code ({error}); the message stands", error=type(error).__name__
        )
        return describe_text(mismatch, [*notes, failed])


def _to_compare(finding: Finding) -> list[str]:
    """What meets on the line that failed, where the text does not tell which of it is stray."""
    names = list(dict.fromkeys(operand.expression for operand in finding.operands if operand.expression.isprintable()))
    short = [name for name in names if len(name) <= 40]
    if len(short) < 2:
        return []
    return [say("there {names} and {last} meet: compare their devices", names=joined(short[:-1]), last=short[-1])]


class PostMortem:
    """One device error being examined. Holds frames and tensors until `finish`; drop it afterwards."""

    def __init__(
        self,
        exc: BaseException,
        mismatch: Mismatch,
        history: CellHistory,
        namespace: dict[str, Any] | None,
        settled: Settled | None = None,
    ) -> None:
        from ipydevice.diagnose import Analysis

        self._mismatch = mismatch
        self._history = history
        self._notes: list[str] = []
        self._analysis: Analysis | None = None
        self._finding: Finding | None = None
        with self._stage(say("reading the frames")):
            if namespace is None:
                namespace = _module_namespace(exc)
            self._analysis = Analysis(exc.__traceback__, mismatch, history, namespace, settled)
        with self._stage(say("naming the culprit")):
            if self._analysis is not None:
                self._analysis.find_culprit()
        with self._stage(say("telling the cause")):
            if self._analysis is not None:
                self._finding = self._analysis.finding()

    @property
    def finding(self) -> Finding | None:
        """What is known so far, with live objects in it; None after `finish`. A check needs them to repair the call."""
        return self._finding

    @property
    def headline(self) -> str:
        """One line: what is where."""
        from ipydevice.diagnose.describe import headline

        if self._finding is not None:
            return headline(self._finding)
        return _of_text(self._mismatch, (), self._history, []).headline

    def finish(self) -> Diagnosis:
        """The whole Diagnosis; lets go of everything alive."""
        from ipydevice.diagnose.describe import describe

        try:
            if self._finding is None:
                return _of_text(self._mismatch, (), self._history, self._notes)
            return describe(self._finding, self._fixes(), self._rows(), self._notes)
        finally:
            self._analysis = self._finding = None

    def _fixes(self) -> list[Fix]:
        from ipydevice import fixes

        assert self._finding is not None
        found: list[Fix] = []
        with self._stage(say("looking for fixes")):
            found = fixes.propose(self._finding)
        return found

    def _rows(self) -> list[Row]:
        from ipydevice.diagnose.table import rows_of

        assert self._analysis is not None
        rows: list[Row] = []
        with self._stage(say("listing the frames")):
            rows = rows_of(self._analysis.frames)
        return rows

    @contextmanager
    def _stage(self, doing: str) -> Iterator[None]:
        """What fails inside costs this stage and leaves a note; IPYDEVICE_DEBUG=1 raises it instead."""
        try:
            yield
        except Exception as error:  # whatever it is, the user's error comes first
            if os.environ.get("IPYDEVICE_DEBUG"):
                raise
            self._notes.append(
                say(
                    "ipydevice failed while {doing} ({error}); the rest stands", doing=doing, error=type(error).__name__
                )
            )


def _module_namespace(exc: BaseException) -> dict[str, Any]:
    """Outside IPython: the globals of the outermost frame."""
    tb = exc.__traceback__
    return tb.tb_frame.f_globals if tb is not None else {}
