"""Changes of a text by line and column, made in the compiled text and in the user's own."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Characters from `start` to `end` become `new`."""

    start: tuple[int, int]  # 1-based line, 0-based character
    end: tuple[int, int]
    new: str


@dataclass(frozen=True, slots=True)
class NewLines:
    """Whole lines above or below a line, indented as another line is."""

    line: int
    below: bool
    like: int  # the line whose indentation is taken
    column: int  # the most of it that may be taken
    code: str


class ImpossibleError(Exception):
    """This change cannot be made here."""


class Alignment:
    """From a line of the compiled text to the line of the user's text, and how many columns further it stands."""

    def __init__(self, lines: list[str], raw: list[str], shift: int) -> None:
        self._lines, self._raw, self._shift = lines, raw, shift
        self._pairs: dict[int, int] | None = None

    def __call__(self, line: int) -> tuple[int, int]:
        text = self._lines[line - 1]
        guess = line + self._shift
        if not self._fits(text, guess):
            guess = self._by_difference().get(line, 0)
            if not self._fits(text, guess):
                raise ImpossibleError
        return guess, len(self._raw[guess - 1]) - len(text)

    def _fits(self, text: str, number: int) -> bool:
        return 0 < number <= len(self._raw) and self._raw[number - 1].endswith(text)

    def _by_difference(self) -> dict[int, int]:
        if self._pairs is None:
            stripped = [line.strip() for line in self._lines], [line.strip() for line in self._raw]
            blocks = difflib.SequenceMatcher(None, *stripped, autojunk=False).get_matching_blocks()
            self._pairs = {b.a + k + 1: b.b + k + 1 for b in blocks for k in range(b.size)}
        return self._pairs


def apply_changes(
    lines: list[str], changes: list[Span | NewLines], place: Callable[[int], tuple[int, int]], newline: str
) -> str:
    """The text of `lines` with the changes made; `place` tells where a line of the compiled text stands."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(position: tuple[int, int]) -> int:
        line, delta = place(position[0])
        return starts[line - 1] + position[1] + delta

    pieces: list[tuple[int, int, int, str]] = []  # start, order, end, new text
    for order, change in enumerate(changes):
        if isinstance(change, Span):
            pieces.append((offset(change.start), order, offset(change.end), change.new))
            continue
        number, _ = place(change.line)
        like, delta = place(change.like)
        model = lines[like - 1][: change.column + delta]
        indent = model[: len(model) - len(model.lstrip())]
        block = "\n".join(indent + one if one else one for one in change.code.split("\n"))
        if change.below:
            at = starts[number] - 1
            pieces.append((at, order, at, "\n" + block))
        else:
            pieces.append((starts[number - 1], order, starts[number - 1], block + "\n"))
    pieces.sort()
    text, done = "\n".join(lines), 0
    out: list[str] = []
    for start, _, end, new in pieces:
        if start < done:
            raise ImpossibleError
        out += [text[done:start], new]
        done = end
    return "".join([*out, text[done:]]).replace("\n", newline)


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def split_lines(text: str) -> list[str]:
    """Lines as Python counts them: a form feed is none."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def tokens_of(text: str) -> list[tokenize.TokenInfo]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError) as error:
        raise ImpossibleError from error
    return [t for t in tokens if (t.type != tokenize.ENDMARKER and t.string.strip()) or t.type == tokenize.STRING]
