"""Texts that carry another traceback: from workers, replicas, other processes, compilers.

`torch._utils.ExceptionWrapper` (DataLoader, DataParallel) puts the whole traceback of the worker
into the message; so do joblib and multiprocessing (as the cause), Ray, TorchScript and torch.compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ipydevice.messages import ipython_text
from ipydevice.messages.mismatch import TextFrame


@dataclass(frozen=True, slots=True)
class Part:
    """One message inside a text, with the traceback that came with it."""

    text: str
    exception_type: str = ""
    wrapped_in: str | None = None
    frames: tuple[TextFrame, ...] = ()


_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CAUGHT = re.compile(r"Caught (\w+) in (.+?)\.\s*\n")
_FRAME = re.compile(r'^\s*File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+?))?\s*$')
_START = re.compile(
    r"^(?P<indent>\s*)\W*(?:\w+ )?Traceback (?:of TorchScript.*)?\(most recent call last\):|^from user code:"
)
_MESSAGE = re.compile(r"^\s*(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<text>.*)|\s*)$")
_BETWEEN = ("During handling of the above exception", "The above exception was the direct cause")
_HERE = re.compile(r"^\s*[~ ]+<--- HERE")
_AROUND = 40  # lines of source at most
_MARKS = re.compile(r"^\s*[\^~]+\s*$")


def parts(text: str) -> Iterator[Part]:
    """The messages in `text`, the innermost first.

    Lines of source are not read as messages: code that raises device errors stands in tracebacks of other errors.
    """
    text = _ANSI.sub("", text)
    if ipython_text.is_one(text):
        frames, kind, message = ipython_text.frames_and_message(text)
        yield Part(message or text, kind, None, frames)
        return
    lines = text.splitlines() if "File " in text else []
    blocks = list(_blocks(lines))
    where = _where(text) if lines else None
    for block in reversed(blocks):
        if block.text:
            yield Part(block.text, block.exception_type, where, block.frames)
    if any(block.text for block in blocks):
        first = next(number for number, line in enumerate(lines) if _START.match(line))
        text = "\n".join(lines[:first])
    yield Part(text, "", where, blocks[-1].frames if blocks else ())


def _where(text: str) -> str | None:
    caught = _CAUGHT.search(text)
    if caught is not None:
        return caught[2]
    if "TorchScript" in text:
        return "TorchScript"
    if "\nfrom user code:" in text:
        return "torch.compile"
    return "another process" if text.lstrip().startswith('"""') else None


def _blocks(lines: list[str]) -> Iterator[Part]:
    """Each traceback in the text with the message below it."""
    number = 0
    while number < len(lines):
        if _START.match(lines[number]) is None:
            number += 1
            continue
        frames, number = _frames(lines, number + 1)
        kind, message, number = _message(lines, number)
        yield Part(message, kind, None, tuple(frames))


def _frames(lines: list[str], number: int) -> tuple[list[TextFrame], int]:
    frames: list[TextFrame] = []
    while number < len(lines):
        head = _FRAME.match(lines[number])
        if head is None:
            if lines[number].strip() and (not frames or not lines[number].startswith(" ")):
                break
            number += 1
            continue
        source, number = _source(lines, number + 1)
        frames.append(TextFrame(head["file"], int(head["line"]), head["function"] or "", source))
    return frames, number


def _source(lines: list[str], number: int) -> tuple[str, int]:
    """The line that ran, and the number of the line after the source."""
    here = _here(lines, number)
    if here is not None:
        return lines[here - 1].strip(), here + 1
    first = ""
    while number < len(lines) and lines[number].startswith(" ") and not _FRAME.match(lines[number]):
        if not first and not _MARKS.match(lines[number]):
            first = lines[number].strip()
        number += 1
    return first, number


def _here(lines: list[str], number: int) -> int | None:
    """TorchScript prints the lines around it too, at their own indentation, and marks the one that ran below it."""
    for place in range(number, min(number + _AROUND, len(lines))):
        if _HERE.match(lines[place]):
            return place
        if _FRAME.match(lines[place]) or _START.match(lines[place]):
            return None
    return None


def _message(lines: list[str], number: int) -> tuple[str, str, int]:
    """Exception type, its message, and the number of the line after it."""
    head = _MESSAGE.match(lines[number]) if number < len(lines) else None
    if head is None or _START.match(lines[number]):
        return "", "", number
    text = [head["text"] or ""]
    number += 1
    while number < len(lines) and _START.match(lines[number]) is None and not lines[number].startswith(_BETWEEN):
        text.append(lines[number])
        number += 1
    return head["type"].rpartition(".")[2], "\n".join(text).strip().removesuffix('"""').strip(), number
