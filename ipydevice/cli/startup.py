"""`enable` and `disable`: a startup file in the IPython profile, and nothing else."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from ipydevice import notebook_files
from ipydevice.input_error import InputError

DOCS = {
    "enable": """Load ipydevice in every new IPython shell, notebook and console of a profile: writes one startup file
and shows it. Running shells are left alone. `ipydevice disable` takes it away again.

Examples:
  ipydevice enable
  ipydevice enable --profile research
  ipydevice enable --dry-run
""",
    "disable": """Undo exactly what `ipydevice enable` has written. A startup file that was changed since is left alone.

Examples:
  ipydevice disable
  ipydevice disable --profile research
""",
}

NAME = "50-ipydevice.py"
# Where ipydevice is not installed (another environment of the same profile) the shell starts as if nothing were.
TEXT = """# Written by `ipydevice enable`; `ipydevice disable` removes this file.
try:
    get_ipython().run_line_magic("load_ext", "ipydevice")
except ImportError:
    pass
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="default", metavar="NAME", help="the IPython profile; default: default")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")


def run(given: argparse.Namespace) -> int:
    file = _folder(given.profile) / "startup" / NAME
    return _enable(file, dry=given.dry_run) if given.command == "enable" else _disable(file, dry=given.dry_run)


def _folder(profile: str) -> Path:
    """The profile's folder. Raises InputError where IPython, or the profile, is missing."""
    try:
        from IPython.paths import get_ipython_dir
    except ImportError:
        raise InputError("IPython is not installed here, so there is no profile to write to") from None
    if not profile.replace("-", "_").isidentifier():
        raise InputError(f"a profile's name has letters, digits and -, and `{profile}` is none")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns, and names a temporary folder, where it may not write
        try:
            home = get_ipython_dir()
        except UserWarning as warning:
            raise InputError(f"there is no place for an IPython profile: {warning}") from None
    folder = Path(home) / f"profile_{profile}"
    if not folder.is_dir() and profile != "default":  # IPython makes the default one itself
        raise InputError(f"there is no IPython profile {profile}; `ipython profile create {profile}` makes one")
    return folder


def _enable(file: Path, *, dry: bool) -> int:
    if file.exists():
        if _read(file) == TEXT:
            print(f"already enabled by {file}")
            return 0
        raise InputError(f"{file} is there and is not ours; move it away first")
    print(f"{'would write' if dry else 'writing'} {file}:\n")
    print("\n".join(f"    {line}" for line in TEXT.splitlines()))
    if dry:
        return 0
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        notebook_files.write(file, TEXT.encode())
    except OSError as error:
        raise InputError(f"{file} cannot be written ({error.strerror or error})") from None
    print("\nNew shells and kernels load ipydevice; `ipydevice disable` undoes this.")
    return 0


def _disable(file: Path, *, dry: bool) -> int:
    if not file.exists():
        print(f"not enabled: there is no {file}")
        return 0
    if _read(file) != TEXT:
        print(
            f"ipydevice disable: {file} was changed since it was written; look at it and remove it yourself",
            file=sys.stderr,
        )
        return 1
    print(f"{'would remove' if dry else 'removing'} {file}")
    if not dry:
        try:
            file.unlink()
        except OSError as error:
            raise InputError(f"{file} cannot be removed ({error.strerror or error})") from None
    return 0


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
