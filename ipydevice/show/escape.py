"""Strings from the user's session as harmless, visible text."""

from __future__ import annotations

import re
import unicodedata

_SUSPECT = re.compile(r"[^\x20-\x7e]")
# Joiners and variation selectors hold emoji and Indic scripts together; alone they do no harm.
_HARMLESS_FORMAT = {"\u200c", "\u200d", "\ufe0e", "\ufe0f"}


def visible(text: str) -> str:
    """`text` on one line, with control, bidirectional and surrogate characters spelled out.

    A terminal would obey escape sequences in a variable's name or a path, and bidirectional
    overrides make code look like other code (CVE-2021-42574).
    """
    return text if text.isascii() and text.isprintable() else _SUSPECT.sub(_spell, text)


def _spell(match: re.Match[str]) -> str:
    character = match.group()
    if character == "\t":
        return "    "
    if character == "\n":
        return "⏎"
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in _HARMLESS_FORMAT:
        code = ord(character)
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    return character


def cells(text: str) -> int:
    """Columns that `text` takes in a terminal; wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # with prompt_toolkit, which IPython needs

    columns: int = wcswidth(text)
    return columns if columns >= 0 else len(text)


def crop(text: str, width: int) -> str:
    """`text` in at most `width` columns; what is left out of the middle becomes one ellipsis."""
    if cells(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    tail = _take(text[::-1], (width - 1) // 3)[::-1]
    head = _take(text, width - 1 - cells(tail))
    return f"{head}…{tail}"


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken at spaces and in Chinese, inside a word only where it is too long."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        gap = " "
        for piece in [word] if word.isascii() else _PIECE.findall(word) or [""]:
            while cells(piece) > width:
                if line:
                    lines.append(line)
                    line = ""
                head = _take(piece, width)
                lines.append(head)
                piece = piece[len(head) :]
            joined = f"{line}{gap}{piece}" if line else piece
            if cells(joined) <= width:
                line = joined
            else:
                lines.append(line)
                line = piece
            gap = ""
    return [*lines, line] if line or not lines else lines


# Between ideographs a line may end, but not before a closing mark or behind an opening one.
_WIDE = "\u2e80-\u2fff\u3040-\u9fff\uf900-\ufaff"
_OPENING, _CLOSING = "（「『《【“", "，。；：、）」』》】！？”…"
_PIECE = re.compile(f"[{_OPENING}]*(?:[{_WIDE}]|[^{_WIDE}{_OPENING}{_CLOSING}]+)[{_CLOSING}]*|[{_OPENING}{_CLOSING}]+")


def _take(text: str, width: int) -> str:
    taken = ""
    used = 0
    for character in text:
        used += cells(character)
        if used > width and taken:
            break
        taken += character
    return taken
