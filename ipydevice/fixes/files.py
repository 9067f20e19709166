"""Writing a fix that edits files: only the kernel can, and only what has not changed since."""

from __future__ import annotations

import tokenize
from pathlib import Path

from ipydevice.diagnosis import Edit, Fix
from ipydevice.language import say


def write(fix: Fix) -> list[str]:
    """Write the files that `fix` edits, all or none, and return their names; what they were stands in ``NAME.bak``.

    Raises:
        ValueError: a file's text is no longer the one that the fix was made for.
        OSError: a file cannot be read or written.
    """
    edits = [edit for edit in fix.edits if edit.file is not None]
    checked = [(edit, *_read(edit)) for edit in edits]
    for edit, path, encoding, newline in checked:
        path.with_name(path.name + ".bak").write_bytes(path.read_bytes())
        with path.open("w", encoding=encoding, newline=newline) as file:
            file.write(edit.after)
    return [str(path) for _, path, _, _ in checked]


def _read(edit: Edit) -> tuple[Path, str, str | None]:
    """The file's path, encoding (PEP 263) and line ends, if it still holds the text that was edited."""
    path = Path(edit.file or "")
    with path.open("rb") as raw:
        encoding, _ = tokenize.detect_encoding(raw.readline)
    with path.open(encoding=encoding) as file:
        text = file.read()
        ends = file.newlines
    if text != edit.before:
        raise ValueError(
            say("{path} has changed since the error; run the failed cell again for a fix of the new text", path=path)
        )
    return path, encoding, ends if isinstance(ends, str) else None
