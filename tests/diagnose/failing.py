"""Small programs that fail, as files and as notebooks, and what `ipydevice.diagnose` makes of them."""

from __future__ import annotations

import ast
import linecache
import textwrap
from pathlib import Path
from typing import Any

import torch
from shells import Shell

from ipydevice import messages
from ipydevice.cells import CellHistory
from ipydevice.diagnose import Analysis
from ipydevice.diagnose.finding import Finding, Site, Step
from ipydevice.diagnose.frames import Frame, Sources, collect
from ipydevice.diagnose.origin import Tracer


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def raised_by(path: Path, text: str, names: dict[str, Any]) -> BaseException:
    """Runs a text as the file of this path; the error that it ends with."""
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    try:
        exec(compile(text, str(path), "exec"), names)
    except BaseException as error:  # noqa: BLE001 - the tests raise all kinds
        return error
    raise AssertionError(f"no error from\n{text}")


def frames_of(error: BaseException) -> list[Frame]:
    return [frame for frame in collect(error.__traceback__, Sources(CellHistory())) if frame.is_user]


class Notebook:
    """Cells in a real shell, and the pieces of a diagnosis of the last error."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.error: BaseException | None = None
        shell.names.update(torch=torch, nn=torch.nn, F=torch.nn.functional, DEV="cuda:0", DEV2="cuda:1")

    def run(self, *cells: str, ids: bool = False) -> BaseException:
        """Runs cells; all but the last have to succeed, the last has to fail."""
        for number, cell in enumerate(cells, 1):
            assert self.error is None, f"cell {number - 1} fails: {self.error}"
            self.error = self.shell.run(textwrap.dedent(cell).strip("\n"), f"id-{number}" if ids else None).error
        assert self.error is not None, "the last cell does not fail"
        return self.error

    @property
    def history(self) -> CellHistory:
        return CellHistory.from_shell(self.shell.ip)

    def analysis(self) -> Analysis:
        assert self.error is not None
        found = messages.find(self.error)
        assert found is not None, f"no device error: {self.error}"
        raised, mismatch = found
        made = Analysis(raised.__traceback__, mismatch, self.history, self.shell.names)
        made.find_culprit()
        return made

    def finding(self) -> Finding:
        finding = self.analysis().finding()
        assert finding is not None
        return finding

    def tracer(self) -> Tracer:
        """A tracer on the last error, whatever it is, or on the cells alone where none has failed."""
        sources = Sources(self.history)
        tb = self.error.__traceback__ if self.error is not None else None
        return Tracer(sources, collect(tb, sources), self.shell.names)

    def trace(self, text: str, device: str | None = "cpu") -> list[str]:
        """The steps of an expression that stands in the innermost failing frame, as texts."""
        tracer = self.tracer()
        frame = tracer.frames[-1]
        assert frame.source is not None
        assert frame.node is not None
        around = frame.source.statement(frame.node) or frame.node
        node = next(
            n
            for part in (frame.node, around)
            for n in ast.walk(part)
            if isinstance(n, ast.expr) and ast.unparse(n) == text
        )
        return [told(step) for step in tracer.trace(Site(frame.source, node, frame.frame), device)]


def told(step: Step) -> str:
    """``assignment 2: x = torch.zeros(3)``: how, the number of the cell, the first line."""
    source = step.site.source
    where = source.cell.number if source.cell is not None else Path(source.file or "?").name
    return f"{step.how} {where}: {source.segment(step.site.node).splitlines()[0]}"
