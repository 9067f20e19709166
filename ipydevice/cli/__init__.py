"""The command line: ``ipydevice COMMAND`` or ``python -m ipydevice COMMAND``.

Exit codes, as linters have them: 0 all is well, 1 something was found or could not be done,
2 the input or the command line is wrong.  A command is imported when it is asked for.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import ipydevice
from ipydevice.input_error import InputError

# argparse rather than a library: these commands need no more, and whoever installs ipydevice into a
# running kernel should get as little else as possible.  It has no shell completion, and nothing that is required has.
COMMANDS = {
    "explain": "explain the device errors in a notebook, a log or a pasted traceback",
    "lint": "find device mistakes in notebooks and programs before they run",
    "fix": "put the safe fixes for a notebook's stored errors into its cells",
    "run": "run a program; where it ends in a device error, explain it below the traceback",
    "checkpoint": "tell what checkpoint files hold and what torch.load would do here, without loading them",
    "ranks": "merge what the ranks of a torchrun job have told into one table, and mark what differs",
    "demo": "notebooks that fail, explained and mended in this terminal; needs no accelerator",
    "enable": "load ipydevice in every new IPython shell and notebook",
    "disable": "undo exactly what `enable` has written",
}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (`{self.prog} --help` shows examples)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = Parser(
        prog="ipydevice",
        description="Tensors on the wrong device: found, explained, fixed. In a notebook: %load_ext ipydevice",
        epilog=_listing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=True,
    )
    parser.add_argument("--version", action="version", version=f"ipydevice {ipydevice.__version__}")
    parser.add_argument("command", nargs="?", choices=list(COMMANDS), metavar="COMMAND")
    known = parser.parse_args(given[:1])
    if known.command is None:
        from ipydevice.cli import versions

        return versions.show()
    try:
        return _run(known.command, given[1:])
    except InputError as error:
        print(f"ipydevice {known.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        if known.command == "run":
            raise  # the program's: the interpreter ends by the signal, as it does without us
        return 130


def _run(name: str, given: list[str]) -> int:
    command = importlib.import_module(f"ipydevice.cli.{'startup' if name in ('enable', 'disable') else name}")
    doc = str(command.__doc__ or "")
    if name in ("enable", "disable"):
        doc = command.DOCS[name]
    about, _, examples = doc.partition("Examples:\n")
    parser = Parser(
        prog=f"ipydevice {name}",
        description=about.strip(),
        epilog=f"examples:\n{examples.rstrip()}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.arguments(parser)
    chosen = parser.parse_args(given)
    chosen.command = name
    code: int = command.run(chosen)
    return code


def _listing() -> str:
    wide = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(wide)}  {about}" for name, about in COMMANDS.items()]
    return "commands:\n" + "\n".join(lines) + "\n\n`ipydevice COMMAND --help` shows examples."
