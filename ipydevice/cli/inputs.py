"""Files and standard input, read as text, with one clear line where that cannot be."""

from __future__ import annotations

import io
import sys
import tokenize
from pathlib import Path

from ipydevice.input_error import InputError

LARGEST = 200 * 2**20  # bytes; a notebook larger than that holds pictures or films, and no person reads it
PRINTED = "a notebook, a log or a traceback"
NOTEBOOK = "a notebook (.ipynb)"
PROGRAM = "a Python program or a notebook (.py, .pyi, .ipynb)"

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LOOKED_AT = 4096  # bytes that tell whether a file is text
# What people give by mistake, by how it begins.
_KINDS = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x80\x02", "a pickle"),
    (b"\x80\x04", "a pickle"),
    (b"\x1f\x8b", "compressed with gzip"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"%PDF", "a PDF"),
    (b"\x7fELF", "a program of the machine's"),
)
_CHECKPOINTS = ("a ZIP archive", "a pickle")  # torch.save writes both


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
            raise InputError(f"{path}: {'a link that leads nowhere' if path.is_symlink() else 'no such file'}")
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} has {path.stat().st_size / 2**20:.0f} MB; at most {LARGEST // 2**20} MB are read")
        return path.read_bytes()
    except PermissionError:
        raise InputError(f"{path}: no permission to read it") from None
    except OSError as error:  # a loop of links, a device that is gone
        raise InputError(f"{path}: {error.strerror or error}") from None


def require_text(raw: bytes, name: str, wanted: str) -> None:
    """Raises InputError where the bytes are no text; `wanted` says what is."""
    if b"\0" not in raw[:_LOOKED_AT] and not raw.startswith(tuple(begin for begin, _ in _KINDS)):
        return
    if raw.startswith(_UTF16):
        raise InputError(f"{name} is in UTF-16, and {wanted} in UTF-8 is read; save it as UTF-8")
    kind = next((kind for begin, kind in _KINDS if raw.startswith(begin)), "binary")
    hint = f"; `ipydevice checkpoint {name}` lists a checkpoint" if kind in _CHECKPOINTS else "; give such a file"
    raise InputError(f"{name} is no text but {kind}, and {wanted} in UTF-8 is read{hint}")


def decoded_notebook(raw: bytes, name: str) -> str:
    """The text of a notebook's file. Raises InputError where it is none."""
    require_text(raw, name, NOTEBOOK)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"{error.reason} at byte {error.start}"
        raise InputError(f"{name} is no notebook: it is not in UTF-8 ({reason}); save it as UTF-8") from None


def decoded_program(raw: bytes, name: str) -> str:
    """The text of a Python program, by PEP 263. Raises InputError where it is none."""
    require_text(raw, name, PROGRAM)
    encoding = program_encoding(raw, name)
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise InputError(f"{name} is not in its encoding, {encoding}; save it as UTF-8") from None


def program_encoding(raw: bytes, name: str) -> str:
    """The encoding that a program declares, else UTF-8. Raises InputError where its beginning is in another."""
    try:
        return tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
    except SyntaxError as error:
        said = "it is not in UTF-8 and declares no encoding" if "declaration" in error.msg else error.msg
        raise InputError(f"{name} cannot be read: {said}; save it as UTF-8, or begin it with `# coding: ...`") from None


def _decoded(raw: bytes, name: str) -> str:
    if not raw.strip():
        raise InputError(f"{name} is empty; {PRINTED} is read")
    if not raw.startswith(_UTF16):
        require_text(raw, name, PRINTED)
    for encoding in ("utf-16",) if raw.startswith(_UTF16) else ("utf-8-sig", "cp1252"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise InputError(f"{name} is in no known encoding; save it as UTF-8")
