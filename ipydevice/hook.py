"""Every patch of IPython and of ``threading.excepthook``, and nothing else.

An error comes to us twice: through the shell's ``showtraceback``, which also serves
``%run`` and callbacks of widgets, and through ``post_run_cell``, which still tells us
when another extension has replaced the former.  A mark on the exception itself says
that it has been seen: exceptions take no weak reference, and ids are used again.

Nothing of ours may come between a person and their error.  Whatever fails in here
costs the panel and one line, never the traceback; set ``IPYDEVICE_DEBUG=1`` to have it
raised instead.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ipydevice.cells import CellHistory
from ipydevice.kept import last_error
from ipydevice.language import Sentence, clauses, say
from ipydevice.launchers import is_engine
from ipydevice.requirements import torch_trouble

if TYPE_CHECKING:
    from ipydevice.diagnosis import Diagnosis, Inventory
    from ipydevice.postmortem import PostMortem
    from ipydevice.ranks.merged import MergedPostMortem

    Started: TypeAlias = PostMortem | MergedPostMortem
    from ipydevice.report import CheckReport

_HOOK = "_ipydevice_hook"  # on the shell: where its Hook stands, if there is one
_MARK = "_ipydevice"  # on an exception: (n of the In [n] in which it was shown, number of its Diagnosis)
Result = TypeVar("Result")

# Without these a process has no device errors, neither its own nor those of engines that it commands.
_TELLING = ("torch", "ipyparallel")
_OUTSIDE = 0  # the n for code that no cell runs: callbacks, threads


def of(shell: Any) -> Hook | None:
    """What hangs in this shell, or None."""
    hook: Hook | None = shell.__dict__.get(_HOOK)
    return hook


def load(shell: Any) -> Hook:
    """Hang ipydevice into a shell, once, and say so if the last error is one of ours."""
    hook = of(shell)
    if hook is None:
        hook = Hook(shell)
        hook.install()
        hook.greet()
    return hook


def unload(shell: Any) -> None:
    """Take out what is ours. A wrapper that somebody else has wrapped since becomes a plain pass-through."""
    hook = of(shell)
    if hook is not None:
        hook.remove()


class Hook:
    """What ipydevice has hung into one shell. Of errors it keeps the last Diagnosis: strings."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.history = CellHistory.from_shell(shell)
        self.last: Diagnosis | None = None
        self.checked: CheckReport | Inventory | None = None  # what %%devicecheck or %devices has offered since
        self.error_before: str | None = None  # the class of the last error before loading, where that is none of ours
        self._count = 0  # diagnoses so far
        self._started: list[Any] = []  # IPython's notes on the cells that are running: strings
        self._installed = False
        self._failed: list[str] = []  # stages of ours, to be said under the traceback
        self._told_requirements = False
        self._panel: Diagnosis | None = None  # of the last error of any kind, where that was one of ours

    def install(self) -> None:
        self._installed = True
        shell_before = self.shell.__dict__.get("showtraceback")  # set when another extension has wrapped it
        show_before = self.shell.showtraceback
        thread_before = threading.excepthook

        def showtraceback(*args: Any, **kwargs: Any) -> None:
            with self._told(_being_shown(*args, **kwargs)):
                show_before(*args, **kwargs)

        def excepthook(args: threading.ExceptHookArgs, /) -> None:
            with self._told(args.exc_value, in_thread=True):
                thread_before(args)

        self._show_before = shell_before
        self._show = showtraceback
        self._thread_before = thread_before
        self._thread = excepthook
        self.shell.showtraceback = showtraceback
        threading.excepthook = excepthook
        self.shell.events.register("pre_run_cell", self._cell_starts)
        self.shell.events.register("post_run_cell", self._cell_ends)
        setattr(self.shell, _HOOK, self)

    def remove(self) -> None:
        self._installed = False
        if self.shell.__dict__.get("showtraceback") is self._show:
            if self._show_before is None:
                del self.shell.showtraceback
            else:
                self.shell.showtraceback = self._show_before
        if threading.excepthook is self._thread:
            threading.excepthook = self._thread_before
        for event, callback in (("pre_run_cell", self._cell_starts), ("post_run_cell", self._cell_ends)):
            if callback in self.shell.events.callbacks[event]:
                self.shell.events.unregister(event, callback)
        delattr(self.shell, _HOOK)

    def greet(self) -> None:
        """Loaded after the error: say that there is something to see."""
        if self._attempt(Sentence("looking at the last error"), self._last_is_ours):
            print(say("The last error is a device error: %devicefix shows where it comes from and how to fix it."))
        self._say_what_failed()

    def _last_is_ours(self) -> bool:
        exc = last_error(self.shell)
        if exc is None or "torch" not in sys.modules:
            return False
        from ipydevice import messages

        if messages.recognise(exc) is not None:
            return True
        self.error_before = type(exc).__name__
        return False

    def _cell_starts(self, info: Any) -> None:
        """`pre_run_cell`: on the way of every good cell, so it does nothing but note it down."""
        if info is None or not info.raw_cell:
            return
        # IPython 9.8 counts a cell before it runs it, older ones afterwards; the display hook knows which.
        number = self.shell.displayhook.prompt_count if info.store_history else self.shell.execution_count
        self.history.open(number, info.raw_cell, getattr(info, "cell_id", None))
        self._started.append(info)

    def _cell_ends(self, result: Any) -> None:
        """`post_run_cell`: also tells of errors whose traceback others have shown, or swallowed."""
        if result is None:  # IPython 7.34, when the shell itself has failed
            return
        error = result.error_in_exec or result.error_before_exec
        if error is not None:
            with self._told(error):
                pass
        # An empty cell ends without having started, and the cell that has loaded us started before we listened.
        if self._started and self._started[-1] is result.info:
            self._started.pop()
            self.history.close(bool(result.success))
        elif not self._started:
            self.history.close(bool(result.success))

    @contextmanager
    def _told(self, exc: BaseException | None, *, in_thread: bool = False) -> Iterator[None]:
        """The headline before what happens inside, the panel after it; neither for what is no device error."""
        if exc is not None and not in_thread:
            self._attempt(Sentence("closing the check"), self._close_check, exc)
        # The cell that runs by now need not be the one that has started the thread.
        history = self.history.afterwards() if in_thread else self.history
        found = self._begin(exc, history) if exc is not None and self._installed else None
        yield
        if found is not None:
            self._finish(*found, panel=not in_thread)
        self._say_what_failed()

    def _close_check(self, exc: BaseException) -> None:
        """What happens from now on, such as the formatting of the traceback, is not the checked cell's doing."""
        from ipydevice.devicecheck import magic

        checks = magic.of(self.shell)
        if checks is not None:
            checks.pause(exc)

    def explained(self, exc: BaseException) -> bool:
        """Whether `last` is about this exception."""
        return self.last is not None and exc.__dict__.get(_MARK, (None, None))[1] == self._count

    def remember(self, exc: BaseException, diagnosis: Diagnosis) -> None:
        """Somebody has asked about this exception: from now on `%devicefix` numbers the fixes of this diagnosis."""
        self._count += 1
        exc.__dict__[_MARK] = (exc.__dict__.get(_MARK, (None, None))[0], self._count)
        self.last = diagnosis
        self.checked = None

    def _begin(self, exc: BaseException, history: CellHistory) -> tuple[Started, str | None] | None:
        """The started post-mortem and its headline, which now stands on the exception."""
        cell = self.history.running.number if self.history.running else _OUTSIDE
        if not any(name in sys.modules for name in _TELLING) or exc.__dict__.get(_MARK, (None, None))[0] == cell:
            return None
        self._attempt(Sentence("hiding the frames of virtual GPUs"), _cut_virtual_frames, exc)
        found = self._attempt(Sentence("recognising the error"), self._examine, exc, history)
        if found is None:
            self._panel = None
            if not self._failed:
                return None
        seen_before = exc.__dict__.get(_MARK, (None, None))[0] is not None
        self._count += 1
        exc.__dict__[_MARK] = (cell, self._count)
        if found is None:
            return None
        headline = self._attempt(Sentence("writing the headline"), getattr, found, "headline")
        if headline is not None and not seen_before:
            self._attempt(Sentence("putting the headline on the error"), BaseException.add_note, exc, headline)
        return found, headline

    def _examine(self, exc: BaseException, history: CellHistory) -> Started | None:
        from ipydevice import postmortem

        return postmortem.begin(exc, history, self.shell.user_ns)

    def _finish(self, found: Started, headline: str | None, *, panel: bool) -> None:
        if panel and headline is not None and not self._shows_notes():
            print(headline, file=sys.stderr)
        requirement = torch_trouble()
        if requirement is not None:
            if not self._told_requirements:
                print(requirement, file=sys.stderr)
            self._told_requirements = True
            return
        self.last = self._attempt(Sentence("diagnosing the error"), found.finish)
        self.checked = None
        if self.last is None:
            return
        if is_engine(self.shell):
            return  # its client shows one panel for all engines
        if panel:
            self._attempt(Sentence("showing the panel"), _display, self.last, self._panel)
            self._panel = self.last
        else:
            print(say("In a thread: %devicefix shows where this comes from and how to fix it."), file=sys.stderr)

    def _shows_notes(self) -> bool:
        """Whether this shell's tracebacks end with the notes of PEP 678: since IPython 8.14."""
        version: tuple[Any, ...] = sys.modules["IPython"].version_info
        return tuple(version[:2]) >= (8, 14)

    def _attempt(self, stage: Sentence, do: Callable[..., Result], *args: Any) -> Result | None:
        """What `do` returns; where it fails, None and one line under the traceback."""
        try:
            return do(*args)
        # Anything at all, an impatient Ctrl-C too: the user's own error comes first.
        except (Exception, KeyboardInterrupt) as error:
            if os.environ.get("IPYDEVICE_DEBUG") == "1":
                raise
            where = _own_module(error)
            self._failed.append(
                say(
                    "{stage} failed in {module} ({error})" if where else "{stage} failed ({error})",
                    stage=say(stage),
                    module=where,
                    error=type(error).__name__,
                )
            )
            return None

    def _say_what_failed(self) -> None:
        if self._failed:
            failed = say(
                "ipydevice: {failed}; the error above is as it was. IPYDEVICE_DEBUG=1 tells more.",
                failed=clauses(self._failed),
            )
            print(failed, file=sys.stderr)
            self._failed.clear()


def _being_shown(exc_tuple: Any = None, *_args: Any, **_kwargs: Any) -> BaseException | None:
    """The exception that `showtraceback` is about to show; None when an old one is shown once more (%tb)."""
    value = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
    return value if issubclass(type(value), BaseException) else None


def _display(diagnosis: Diagnosis, before: Diagnosis | None) -> None:
    from ipydevice import show

    show.display_after_error(diagnosis, before)


def _cut_virtual_frames(exc: BaseException) -> None:
    """Let tracebacks end where a real GPU, which raises from C++, would end them, for %debug too."""
    virtual = sys.modules.get("ipydevice.virtual")
    if virtual is None:
        return
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        virtual.trim_traceback(one)
        members = BaseExceptionGroup.exceptions.__get__(one) if issubclass(type(one), BaseExceptionGroup) else ()
        waiting += [one.__cause__, one.__context__, *members]


def _own_module(error: BaseException) -> str | None:
    """The module of ours in which `error` was raised, such as ``diagnose.locate``; None for none but this."""
    where = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("ipydevice.") and name != __name__:
            where = name.removeprefix("ipydevice.")
    return where
