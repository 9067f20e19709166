"""Files and standard input, read as text, with one clear line where that cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

from ipydevice.input_error import InputError

LARGEST = 200 * 2**20  # bytes; a notebook larger than that holds pictures or films, and no person reads it


def read_text(path: str) -> str:
    """The text of a file, "-" for standard input. Raises InputError where there is none."""
    if path == "-":
        return _decoded(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    return _decoded(read_bytes(Path(path)), path)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises InputError where they cannot be read, or are too many."""
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; give a file")
        if not path.exists():
            raise InputError(f"{path}: no such file")
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} has {path.stat().st_size / 2**20:.0f} MB; at most {LARGEST // 2**20} MB are read")
        return path.read_bytes()
    except PermissionError:
        raise InputError(f"{path}: no permission to read it") from None
    except OSError as error:  # a loop of links, a device that is gone
        raise InputError(f"{path}: {error.strerror or error}") from None


def _decoded(raw: bytes, name: str) -> str:
    if not raw.strip():
        raise InputError(f"{name} is empty")
    if b"\0" in raw[:4096] and not raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name} is no text file")
    for encoding in ("utf-16",) if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig", "cp1252"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise InputError(f"{name} is in no known encoding; save it as UTF-8")
