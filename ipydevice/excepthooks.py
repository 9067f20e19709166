"""Programs outside of IPython: the panel below the traceback of an uncaught error, in threads and under torchrun too.

The interpreter's own hooks run first and whole; what fails here costs one line.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from ipydevice import launchers
from ipydevice.language import say

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]
ThreadHook = Callable[[threading.ExceptHookArgs], Any]


class _Installed:
    """The hooks that were there before ours."""

    hook: Hook | None = None
    thread_hook: ThreadHook | None = None
    explained: int = 0  # `id` of the error explained last: holding the error itself would keep its frames alive


def install() -> None:
    """Explain uncaught device errors in this program, below their traceback. Calling it again changes nothing.

    In IPython ``%load_ext ipydevice`` does it, and this does nothing.
    """
    from ipydevice.session import current_shell

    if _Installed.hook is not None or current_shell() is not None:
        return
    _Installed.hook, _Installed.thread_hook = sys.excepthook, threading.excepthook
    sys.excepthook, threading.excepthook = _uncaught, _uncaught_in_thread


def uninstall() -> None:
    """Take our hooks out again, where nobody has hung others over them."""
    if sys.excepthook is _uncaught and _Installed.hook is not None:
        sys.excepthook = _Installed.hook
    if threading.excepthook is _uncaught_in_thread and _Installed.thread_hook is not None:
        threading.excepthook = _Installed.thread_hook
    _Installed.hook = _Installed.thread_hook = None


def explain_below(exc: BaseException) -> None:
    """Write the panel of a device error to standard error; nothing for other errors.

    Of several processes that fail at the same place one shows the panel, the others one line.
    """
    _Installed.explained = id(exc)
    try:
        text = _panel(exc)
    except Exception as error:  # whatever it is, the program's own error comes first
        if os.environ.get("IPYDEVICE_DEBUG"):
            raise
        text = say("ipydevice failed ({error}); the error above is as it was", error=type(error).__name__)
    if text and sys.stderr is not None:
        mine = launchers.rank()
        prefix = f"[rank{mine}]: " if mine is not None and not _is_prefixed() else ""
        sys.stderr.write("\n".join(prefix + line for line in text.splitlines()) + "\n")
        sys.stderr.flush()


def _is_prefixed() -> bool:
    """Whether what is written now gets its rank from torch.distributed, whose hook collects it around ours.

    https://github.com/pytorch/pytorch/blob/v2.4.0/torch/distributed/distributed_c10d.py (``_distributed_excepthook``)
    """
    return isinstance(sys.stderr, io.StringIO) and getattr(sys.excepthook, "__name__", "") == "_distributed_excepthook"


def has_explained(exc: BaseException) -> bool:
    """Whether `exc`, which is still alive, was the last one given to `explain_below`."""
    return _Installed.explained == id(exc)


def _panel(exc: BaseException) -> str:
    from ipydevice import postmortem  # a program that ends well pays for none of this

    found = postmortem.begin(exc)
    if found is None:
        return ""
    from ipydevice import printing

    diagnosis = found.finish()
    failed = diagnosis.failed
    place = f"{failed.file} {failed.cell} {failed.line}"
    if launchers.rank() is not None and not _is_first(f"{place} {diagnosis.message_id} {diagnosis.cause}"):
        return say("the same device error at {failed}; another rank of this machine shows it", failed=diagnosis.failed)
    return printing.panel(diagnosis, color=sys.stderr.isatty())


def _is_first(error: str) -> bool:
    """Whether no other process of this launch has shown this error: the first one makes an empty file for it.

    The launcher's process id is in its name, since run ids and ports come again.
    """
    launch = [
        os.environ.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID")
    ]
    name = hashlib.sha256("\0".join([str(os.getppid()), *launch, error]).encode()).hexdigest()[:20]
    folder = _folder_of_launch()
    try:
        os.close(os.open(folder / f"{_MARK}{name}", os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:  # nowhere to write: rather twice than never
        return True
    _forget_old_marks(folder)
    return True


_MARK = "ipydevice-"
_OLD = 3600.0  # seconds: by then every rank of a launch has ended


def _folder_of_launch() -> Path:
    """The folder that torchrun makes for each attempt of a launch; of other launchers the one for temporary files."""
    answers = os.environ.get("TORCHELASTIC_ERROR_FILE", "")  # .../attempt_0/LOCAL_RANK/error.json
    folder = Path(answers).parent.parent
    return folder if answers and folder.is_dir() else Path(tempfile.gettempdir())


def _forget_old_marks(folder: Path) -> None:
    """Remove what former launches have left: no rank can know that it is the last to fail, and tidy up itself."""
    for mark in folder.glob(f"{_MARK}{'[0-9a-f]' * 20}"):
        with contextlib.suppress(OSError):  # somebody else's, or gone
            if time.time() - mark.stat().st_mtime > _OLD:
                mark.unlink()


def _uncaught(kind: type[BaseException], exc: BaseException, tb: TracebackType | None) -> None:
    trim(exc)
    (_Installed.hook or sys.__excepthook__)(kind, exc, exc.__traceback__ or tb)
    explain_below(exc)


def _uncaught_in_thread(given: threading.ExceptHookArgs) -> None:
    if given.exc_value is not None:
        trim(given.exc_value)
        given = threading.ExceptHookArgs((given.exc_type, given.exc_value, given.exc_value.__traceback__, given.thread))
    (_Installed.thread_hook or threading.__excepthook__)(given)
    if given.exc_value is not None:
        explain_below(given.exc_value)


def trim(exc: BaseException) -> None:
    """Let the traceback end where a real card, which raises from C++, would end it."""
    virtual = sys.modules.get("ipydevice.virtual")
    if virtual is not None:
        virtual.trim_traceback(exc)
