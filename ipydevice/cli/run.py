"""Run a program as `python` would; where it ends in a device error, explain it below the traceback.

The program sees its own arguments, its folder comes first on the path, its exit code is passed on. Under torchrun
each line says its rank. A program can do the same itself: `import ipydevice; ipydevice.install()`.

Examples:
  ipydevice run train.py --epochs 3
  ipydevice run -m package.train
  torchrun --nproc-per-node 2 -m ipydevice run train.py
  torchrun --nproc-per-node 2 -m ipydevice run --virtual-gpus 2 train.py
  ipydevice run --virtual 2 train.py      # two virtual GPUs, on a machine without one
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import zipfile
from pathlib import Path
from types import TracebackType

from ipydevice import excepthooks
from ipydevice.cli import inputs
from ipydevice.input_error import InputError


def arguments(parser: argparse.ArgumentParser) -> None:
    # Under torchrun, whose own parser takes `--virtual` for a beginning of its `--virtual-local-rank`, the long name.
    parser.add_argument(
        "--virtual", "--virtual-gpus", type=int, metavar="N", help="with N virtual GPUs: real arithmetic on the host"
    )
    parser.add_argument("-m", action="store_true", dest="module", help="the program is a module's name")
    parser.add_argument("program", metavar="PROGRAM", help="a Python file, or with -m a module")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="...", help="the program's own arguments")


def run(given: argparse.Namespace) -> int:
    if not given.module:
        path = Path(given.program)
        if path.is_dir():
            raise InputError(f"{path} is a folder; give a Python file, or a module with -m")
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        if path.suffix == ".ipynb":
            raise InputError(f"{path} is a notebook; `jupyter execute` runs it, `ipydevice explain` reads its errors")
        _require_program(path)
    if given.virtual is not None and given.virtual < 1:
        raise InputError(f"--virtual takes a number of GPUs from 1 on, and is {given.virtual}")
    excepthooks.install()  # for its threads
    try:
        if given.virtual is not None:
            from ipydevice.virtual import virtual_gpus

            virtual_gpus(given.virtual).enable()
        return _run(given.program, given.args, as_module=given.module)
    finally:
        excepthooks.uninstall()


def _require_program(path: Path) -> None:
    """Raises InputError for what cannot be read, or is binary and nothing that `python` runs."""
    try:
        with path.open("rb") as file:
            begin = file.read(4096)
        if path.suffix != ".pyc" and not zipfile.is_zipfile(path):
            inputs.require_text(begin, str(path), "a Python program")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from None


def _run(program: str, args: list[str], *, as_module: bool) -> int:
    sys.argv = [program, *args]
    # As `python` has it: the program's folder first, for a module the current one.
    sys.path.insert(0, os.getcwd() if as_module else str(Path(program).resolve().parent))
    try:
        if as_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as error:
        return _exit_code(error)
    except BaseException as error:  # everything that would have ended the program
        error.__traceback__ = own = _own(error)
        if own is None and isinstance(error, ImportError):
            raise InputError(str(error)) from None  # -m with a name that is no module
        _show(error)
        if isinstance(error, KeyboardInterrupt):
            sys.excepthook = lambda *_: None  # it is shown; the interpreter's own exit code or signal is still to come
            raise
        return 1
    return 0


def _own(error: BaseException) -> TracebackType | None:
    """The traceback from the program's first frame on, without ours, runpy's and the import system's.

    None where the program never began, as after a SyntaxError in it.
    """
    tb = error.__traceback__
    while tb is not None and _leads_there(tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    return tb


def _leads_there(file: str) -> bool:
    return file in (__file__, runpy.__file__) or file.startswith(("<frozen runpy", "<frozen importlib"))


def _show(error: BaseException) -> None:
    """What the interpreter does with an uncaught error: its hook is asked, that of the program where it has one."""
    sys.last_value, sys.last_type, sys.last_traceback = error, type(error), error.__traceback__
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Exception as wrong:  # noqa: BLE001  # the program's hook
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(wrong), wrong, wrong.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)
    if not excepthooks.has_explained(error):
        excepthooks.explain_below(error)


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1
