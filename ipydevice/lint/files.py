"""Which files are meant: those given, and in folders the programs and notebooks that are not ignored."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ipydevice.input_error import InputError

SUFFIXES = (".py", ".pyi", ".ipynb")
# What is never meant, as other linters have it.
_SKIPPED = frozenset(
    ".git .hg .svn .venv venv .tox .nox .mypy_cache .ruff_cache .pytest_cache .ipynb_checkpoints __pycache__ "
    "node_modules site-packages build dist .eggs".split()
)


def find(paths: Sequence[str]) -> list[Path]:
    """The files, each once. Raises InputError for a path that is not there."""
    found: dict[str, Path] = {}
    for given in paths:
        path = Path(given)
        try:
            there, folder = path.exists(), path.is_dir()
        except OSError as error:
            raise InputError(f"{given}: {error.strerror}") from None
        if not there:
            reason = "a loop of links" if path.is_symlink() else "no such file or folder"
            raise InputError(f"{given}: {reason}")
        for file in _not_ignored(sorted(_inside(path)), path) if folder else [path]:
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _inside(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in files:
            path = Path(where, name)
            if name.endswith(SUFFIXES) and path.is_file():  # no pipe, no lock of an editor's that links to nothing
                yield path


def _not_ignored(files: list[Path], folder: Path) -> list[Path]:
    """Without those that git ignores; all of them where there is no git or no repository."""
    if not files:
        return []
    try:
        asked = subprocess.run(
            ["git", "-C", str(folder), "check-ignore", "-z", "--stdin"],
            input="\0".join(os.path.abspath(file) for file in files),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return files
    ignored = set(asked.stdout.split("\0")) if asked.returncode in (0, 1) else set()
    return [file for file in files if os.path.abspath(file) not in ignored]
