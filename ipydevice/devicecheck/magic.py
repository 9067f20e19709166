"""``%%devicecheck``: a cell that is run as any other, with a check around it.

The line ``%%devicecheck ...`` is turned into a first line of Python that opens the check, and the
end of the cell closes it.  So file name, line numbers, the last expression, top-level ``await`` and
tracebacks are IPython's own: code run from inside of a cell magic has none of them right.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from ipydevice import hook
from ipydevice.arguments import parsed
from ipydevice.language import Sentence, say
from ipydevice.requirements import torch_trouble

# Loading the extension costs a kernel's user time: the rest is imported when a cell is first checked.
if TYPE_CHECKING:
    from ipydevice.cells import Cell
    from ipydevice.report import CheckReport
    from ipydevice.show.progress import Progress

_CELL, _LINE = "%%devicecheck", "%devicecheck"
_BELOW: Sentence = "the code to check stands in the lines below it"


def open_line(lines: list[str]) -> list[str]:
    """An input transformer: the cell magic becomes a line magic, and the rest stays the cell."""
    for at, line in enumerate(lines):
        if line.startswith(_CELL) and line[len(_CELL) : len(_CELL) + 1] in ("", " ", "\t", "\n", "\r"):
            below = lines[at + 1 :]
            if below and below[0].startswith("%%"):  # that one runs the rest, so it has to stand above
                return [*lines[:at], below[0], line[1:], *below[1:]]
            return [*lines[:at], line[1:], *below]
        if line.strip():
            break
    return lines


# IPython asks transformers whether a cell is complete; a cell magic is so at an empty line, not at once.
open_line.has_side_effects = True  # type: ignore[attr-defined]


@magics_class
class CheckMagics(Magics):
    """`%%devicecheck` of one shell."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._check: Any = None
        self._report: CheckReport | None = None
        self._progress: Progress | None = None
        self._inner = 0  # cells that the cell itself runs
        self._quiet = False
        self._output: str | None = None

    @magic_arguments()
    @argument("device", nargs="?", help="where everything should be, such as cuda:0; what is not is reported")
    @argument("--stop", action="store_true", help="stop at the first mistake, as without the check")
    @argument("--dry", action="store_true", help="do not keep the names that the cell defines")
    @argument("--transfers", dest="transfers", action="store_true", default=True, help="list copies (the default)")
    @argument("--no-transfers", dest="transfers", action="store_false", help="list mistakes only")
    @argument("--quiet", action="store_true", help="say nothing where nothing is wrong")
    @argument("-o", dest="output", metavar="NAME", help="keep the report under this name")
    @line_cell_magic
    def devicecheck(self, line: str, cell: str | None = None) -> None:
        """Run the cell once and report every device mistake in it, every copy between devices and every wait.

        Calls that fail because their operands are on different devices are repaired for this run only: what is
        on the wrong device is copied, and the call is tried again.

        It sees what Python calls, not the copies and waits that C++ makes inside of one call: autograd in
        `backward`, `torch.save`, NCCL. `torch.profiler` shows those.

        Examples: `%%devicecheck`, `%%devicecheck cuda:0`, `%%devicecheck --dry --no-transfers`.
        """
        from ipydevice.devicecheck.session import history_of

        asked = parsed(self.devicecheck, line, _CELL)
        history = history_of(self.shell)
        below = cell if cell is not None else _below(history.running)
        if asked is None:
            if not _is_empty(below):
                raise UsageError(say("the code below was not run; without -h it is"))
            return
        if asked.output is not None and not asked.output.isidentifier():
            raise UsageError(
                say("%%devicecheck -o takes a name for the report, but got {name}", name=repr(asked.output))
            )
        trouble = torch_trouble()
        if trouble is not None:
            raise UsageError(trouble)
        from ipydevice.devicecheck import callsite
        from ipydevice.devicecheck.check import expected_device
        from ipydevice.devicecheck.watching import Check
        from ipydevice.report import CheckReport
        from ipydevice.show.progress import Progress

        try:
            expected = expected_device(self._meant(asked.device), _CELL)
        except ValueError as error:
            raise UsageError(say("; ").join((str(error), say(_BELOW)))) from None
        if _is_empty(below):
            raise UsageError(
                say("{magic} checks the code of its cell, and there is none; {below}", magic=_CELL, below=say(_BELOW))
            )
        self.close()
        frame = callsite.nearest(sys._getframe(1))
        self._report, self._quiet, self._output, self._inner = CheckReport(), asked.quiet, asked.output, 0
        self._check = Check(
            self._report,
            history,
            self.shell.user_ns,
            expected=expected,
            stop=asked.stop,
            dry=asked.dry,
            transfers=asked.transfers,
            cell=history.running,
            base=None if frame is None else callsite.Base.of(frame),
        )
        self.shell.events.register("pre_run_cell", self._cell_starts)
        self.shell.events.register("post_run_cell", self._cell_ends)
        if not asked.quiet:
            self._progress = Progress(self.shell, self._so_far)
            self._progress.start()
        self._check.start()
        if cell is not None:  # called by hand: run_cell_magic("devicecheck", "", text)
            try:
                exec(self.shell.transform_cell(cell), self.shell.user_ns)
            finally:
                self._finish(None)

    def _meant(self, device: str | None) -> Any:
        """A device as written, in quotes or not, or the one that a name of the workspace stands for."""
        if device is None:
            return None
        named = self.shell.user_ns.get(device)
        if type(named) is str or type(named) is sys.modules["torch"].device:
            return named
        return device.strip("\"'")

    def pause(self, error: BaseException) -> None:
        """The cell has failed and its traceback is about to be shown: what happens now is not the cell's."""
        if self._progress is not None:
            self._progress.stop()
        if self._check is not None:
            self._check.fail(error)

    def _so_far(self) -> str:
        from ipydevice.show import check_report

        check = self._check
        return check_report.progress(*check.seen()) if check is not None else ""

    def _cell_starts(self, info: Any) -> None:
        self._inner += 1

    def _cell_ends(self, result: Any) -> None:
        if self._inner:
            self._inner -= 1
            return
        self._finish(None if result is None else result.error_in_exec or result.error_before_exec)

    def _finish(self, error: BaseException | None) -> None:
        check, report = self._check, self._report
        self.close(check is not None)
        if check is None or report is None:
            return
        try:
            check.stop(error)
        except Exception as ours:
            if os.environ.get("IPYDEVICE_DEBUG") == "1":
                raise
            # The cell has run; what it did and said stands.
            print(say("ipydevice: the check has no report ({error})", error=type(ours).__name__), file=sys.stderr)
            return
        if self._output is not None:
            self.shell.user_ns[self._output] = report
        hung = hook.of(self.shell)
        if hung is not None and report.fixes:
            hung.checked = report
        if not (self._quiet and report.clean and not report.odd and not report.error):
            from ipydevice import show

            show.display(report)

    def close(self, keep: bool = False) -> None:
        """Stop listening; a check that is still open is dropped without a report."""
        for event, callback in (("pre_run_cell", self._cell_starts), ("post_run_cell", self._cell_ends)):
            if callback in self.shell.events.callbacks[event]:
                self.shell.events.unregister(event, callback)
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        if self._check is not None:
            self._check.release()
        self._check = None
        if not keep:
            self._report = None


def _below(running: Cell | None) -> str | None:
    """What a cell has below its line with the magic; None where it is in no cell that is known."""
    lines = [] if running is None else running.raw.splitlines()
    at = next((at for at, line in enumerate(lines) if line.lstrip("% \t").startswith(_CELL.lstrip("%"))), None)
    return None if at is None else "\n".join(lines[at + 1 :])


def _is_empty(code: str | None) -> bool:
    lines = [] if code is None else [line.strip() for line in code.splitlines()]
    return code is not None and all(not line or line.startswith("#") for line in lines)


def of(shell: Any) -> CheckMagics | None:
    """The check magics of a shell, or None."""
    found: CheckMagics | None = shell.magics_manager.registry.get(CheckMagics.__name__)
    return found


def register(shell: Any) -> None:
    """Give a shell `%%devicecheck`, once."""
    if of(shell) is None:
        shell.register_magics(CheckMagics)
        shell.input_transformers_cleanup.append(open_line)


def unregister(shell: Any) -> None:
    """Take it away; a magic of the same name that somebody else has defined since stays."""
    manager = shell.magics_manager
    ours = manager.registry.pop(CheckMagics.__name__, None)
    if ours is None:
        return
    ours.close()
    if open_line in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(open_line)
    for kind in ("line", "cell"):
        if getattr(manager.magics[kind].get("devicecheck"), "__self__", None) is ours:
            del manager.magics[kind]["devicecheck"]
