"""Tracebacks that people paste, log and save, in whatever shape their tools print them.

Plain Python, IPython in all its modes and versions (Colab's too), rich, pytest, and the
prefixes that torchrun, schedulers and loggers put before each line.  Nothing is run and no
file is opened: text in, `PastedError` out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ipydevice import text_frames
from ipydevice.text_frames import PastedFrame
from ipydevice.text_lines import plain, streams

__all__ = ["PastedError", "PastedFrame", "exception_of", "plain_text", "read"]


@dataclass(frozen=True, slots=True)
class PastedError:
    """One exception that a text shows, with what is shown of its traceback."""

    type: str  # as printed: "torch.AcceleratorError"
    message: str
    frames: tuple[PastedFrame, ...] = ()  # the outermost first
    before: PastedError | None = None  # its cause, or the error that was being handled
    caused: bool = False  # `before` is the cause
    seen_by: tuple[str, ...] = ()  # "rank 0": the processes that printed it

    @property
    def said(self) -> tuple[object, ...]:
        """What makes two of them the same error, whoever prints it."""
        return self.type, self.message, self.frames


# Python and IPython print these between the tracebacks of a chain.
_HANDLING = "During handling of the above exception"
_CAUSED = "The above exception was the direct cause"

_START = re.compile(r"Traceback \(most recent call last\)")
_CLASS = r"(?:[a-z_]\w*\.)*[A-Z]\w*"
_MESSAGE = re.compile(rf"^(?P<type>{_CLASS})(?:: ?(?P<text>.*))?$")
_BARE = re.compile(rf"^(?P<type>{_CLASS}(?:Error|Exception|Interrupt|Exit|Iteration|Mismatch\w*)): (?P<text>.+)$")
_PYTEST_MESSAGE = re.compile(r"^E {2,}(?P<text>\S.*)$")
# A message holds the traceback of another process, or of compiled code.
_HOLDS_MORE = ("Original Traceback", "Traceback of TorchScript", "from user code:", '"""', "Remote traceback")
_RULES = ("-----", "=====", "_____")
_LOG_LINE = re.compile(r"^(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[: ])")
_LONGEST = 400  # lines of one message


def read(text: str) -> list[PastedError]:
    """The exceptions in `text`, in the order printed, each once however many processes print it."""
    found: dict[object, PastedError] = {}
    for who, lines in streams(plain(text)):
        for error in _errors(lines):
            known = found.get(error.said)
            seen_by = (*(known.seen_by if known is not None else ()), *([who] if who else []))
            found[error.said] = replace(error, seen_by=tuple(dict.fromkeys(seen_by)))
    return list(found.values())


def plain_text(text: str) -> str:
    """A message without colours and links."""
    return "\n".join(plain(text)).strip()


def exception_of(error: PastedError) -> tuple[BaseException, dict[int, PastedError]]:
    """Exceptions with the same class names, messages and chain, and by id which of them stands for what."""
    made: dict[int, PastedError] = {}
    top = _exception(error)
    made[id(top)] = error
    inner, above, depth = top, error, 0
    while above.before is not None and depth < 20:
        made_now = _exception(above.before)
        made[id(made_now)] = above.before
        if above.caused:
            inner.__cause__ = made_now
        else:
            inner.__context__ = made_now
        inner, above, depth = made_now, above.before, depth + 1
    return top, made


def _exception(error: PastedError) -> BaseException:
    module, _, name = error.type.rpartition(".")
    return type(name or "Exception", (Exception,), {"__module__": module or "builtins"})(error.message)  # type: ignore[no-any-return]


@dataclass
class _Block:
    """One traceback being read."""

    frames: list[PastedFrame] = field(default_factory=list)
    pytest: list[str] = field(default_factory=list)  # its E lines


def _errors(lines: list[str]) -> Iterator[PastedError]:
    block = _Block()
    last: PastedError | None = None
    link: str | None = None
    number = 0
    while number < len(lines):
        line = lines[number]
        if _HANDLING in line or _CAUSED in line:
            link = line
        elif (frame := text_frames.read(lines, number)) is not None:
            block.frames.append(frame.frame)
            if frame.raises and block.pytest:
                made = _pytest_error(block)
                number, block = frame.end, _Block()
                if made is not None:
                    yield made
                continue
            number = frame.end
            continue
        elif _START.search(line):
            block = _Block()
        elif (said := _PYTEST_MESSAGE.match(line)) is not None:
            block.pytest.append(said["text"])
            if block.frames and block.frames[-1].source != "" and not _more_pytest(lines, number):
                made = _pytest_error(block)
                block = _Block()
                if made is not None:
                    yield made
        elif (head := _head(line, block)) is not None:
            message, number = _message(lines, number, head["text"] or "")
            made = PastedError(head["type"], message, tuple(block.frames))
            if link is not None and last is not None:
                made = replace(made, before=last, caused=_CAUSED in link)
            following = _next_link(lines, number)
            if not following:
                yield made
            last, link, block = made, None, _Block()
            continue
        number += 1


def _head(line: str, block: _Block) -> re.Match[str] | None:
    """The line that names the exception: anything of a class's shape below frames, else only what ends in Error."""
    return (_MESSAGE if block.frames else _BARE).match(line)


def _next_link(lines: list[str], number: int) -> bool:
    """Whether another exception of the same chain follows."""
    for line in lines[number : number + 3]:
        if line.strip():
            return _HANDLING in line or _CAUSED in line
    return False


def _message(lines: list[str], number: int, first: str) -> tuple[str, int]:
    """The whole message that begins on line `number`, and the number of the line after it."""
    text = [first]
    holds = any(mark in first for mark in _HOLDS_MORE) or first.startswith("Caught ")
    number += 1
    while number < len(lines) and len(text) < _LONGEST:
        line = lines[number]
        more = any(line.lstrip().startswith(mark) for mark in _HOLDS_MORE)
        if _HANDLING in line or _CAUSED in line or _LOG_LINE.match(line) or line.startswith(_RULES):
            break
        if _START.search(line) and not more and not holds:
            break
        if not line.strip() and not holds:
            following = next((later for later in lines[number : number + 3] if later.strip()), "")
            if not following.lstrip().startswith(_HOLDS_MORE):
                break
        holds = holds or more
        text.append(line)
        number += 1
    return "\n".join(text).strip(), number


def _more_pytest(lines: list[str], number: int) -> bool:
    """Whether more of pytest's E lines, or the place of the raise, follow."""
    for line in lines[number + 1 : number + 6]:
        if _PYTEST_MESSAGE.match(line) or text_frames.PYTEST_PLACE.match(line):
            return True
        if line.strip():
            return False
    return False


def _pytest_error(block: _Block) -> PastedError | None:
    head = _MESSAGE.match(block.pytest[0])
    if head is None:
        return None
    text = "\n".join([head["text"] or "", *block.pytest[1:]]).strip()
    return PastedError(head["type"], text, tuple(block.frames))
