"""Printed lines without what terminals, front ends, schedulers and loggers put around them."""

from __future__ import annotations

import re

LONGEST = 2000  # characters of a line that is looked at closely: no head of a frame is longer
_TIME = re.compile(r"^\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]? ?(?:##\[\w+\])?")
_OSC_LINK = re.compile(r"\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)")  # hyperlinks of terminals
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_VSCODE_LINK = re.compile(r"<a href='[^']*'>(.*?)</a>")  # VS Code writes them into a notebook's stored traceback
_BOX = re.compile(r"^\s*│ ?(?P<inside>.*?)\s*│?\s*$")
_BORDER = re.compile(r"^\s*[╭╰├┌└][─╌┄ ]*(?P<title>.*?)[─╌┄ ]*[╮╯┤┐┘]?\s*$")
_GROUP = re.compile(r"^\s*(?:\+-[-+]*(?: \d+ -*)?$|\+ (?=Exception Group)|\| ?)")  # what Python draws beside a group
_QUOTED = re.compile(r"^\s*(?:> ?)+")
_START = re.compile(
    r"^(?P<prefix>.*?)(?P<title>(?:Original |Exception Group |Remote )?Traceback \(most recent call last\))"
)
_TITLES = re.compile(r"^\w[\w.]*\s{2,}$")  # "RuntimeError      Traceback (most recent call last)": IPython's own line

# Who prints: "[rank3]:", "[default3]:" and "[3]:" of torchrun, "(RayTrainWorker pid=12)" of Ray, "3: " of Slurm.
_RANK = re.compile(r"(?:rank[ :=]*|default|local_rank[ :=]*)(?P<rank>\d+)|^\[?(?P<bare>\d+)[\]:]", re.IGNORECASE)
_PID = re.compile(r"pid[ =]+(?P<pid>\d+)", re.IGNORECASE)


def plain(text: str) -> list[str]:
    """Lines without colours, links, boxes and quotation marks."""
    text = _VSCODE_LINK.sub(r"\1", _ANSI.sub("", _OSC_LINK.sub("", text))).replace("\r\n", "\n").replace("\r", "\n")
    lines = [_unboxed(line) for line in _without_times(text.split("\n"))]
    starts = [line for line in lines if "Traceback (most recent call last)" in line]
    if starts and all(_QUOTED.match(line) for line in starts):
        lines = [_QUOTED.sub("", line, count=1) for line in lines]
    indents = {line[: len(line) - len(line.lstrip())] for line in starts}
    if len(indents) == 1 and not any(line.lstrip().startswith(("+", "|")) for line in starts):
        (indent,) = indents  # of code in a post, or of a log
        lines = [line.removeprefix(indent) for line in lines]
    if any("Exception Group Traceback" in line for line in starts):
        lines = [_GROUP.sub("", line, count=1) for line in lines]
    return [line.rstrip() for line in lines]


def _without_times(lines: list[str]) -> list[str]:
    """Without the time at the head of each line that CI services print, and their own marks behind it."""
    said = [line for line in lines if line.strip()]
    if not said or sum(_TIME.match(line) is not None for line in said) < 0.9 * len(said):
        return lines
    return [_TIME.sub("", line, count=1) for line in lines]


def _unboxed(line: str) -> str:
    """A line of rich's box as it would stand without the box."""
    if len(line) > LONGEST or line.lstrip()[:1] not in "╭╰├┌└│":
        return line
    border = _BORDER.match(line)
    if border is not None:
        return border["title"] if "Traceback" in border["title"] else ""
    box = _BOX.match(line)
    return line if box is None else box["inside"]


def streams(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Who prints, "" where it is not said, and the lines printed, without the prefix that says so."""
    patterns = _prefixes(lines)
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        who, rest = "", line
        for pattern in patterns:
            match = pattern.match(line)
            if match is not None:
                who, rest = _who(match[0]), line[match.end() :]
                break
        else:
            start = _START.match(line)
            if start is not None and start["prefix"].strip() and _is_prefix(start["prefix"]):
                rest = start["title"]  # a logger's prefix, on the first line only
        if number and not rest.strip() and not who:
            for printed in found.values():  # an empty line belongs to everybody
                printed.append("")
            continue
        found.setdefault(who, []).append(rest)
    return list(found.items())


def _prefixes(lines: list[str]) -> list[re.Pattern[str]]:
    """What stands before each line of a traceback, digits left open: ranks and times differ."""
    found: dict[str, re.Pattern[str]] = {}
    for number, line in enumerate(lines):
        start = _START.match(line)
        if start is None or not _is_prefix(start["prefix"]):
            continue
        said = "".join(r"\d+" if part.isdigit() else re.escape(part) for part in re.split(r"(\d+)", start["prefix"]))
        pattern = re.compile(said.replace(r"\ ", " ").rstrip() + " ?")
        below = [later for later in lines[number + 1 : number + 40] if later.strip()]
        if sum(pattern.match(later) is not None for later in below) >= max(1, min(2, len(below))):
            found[pattern.pattern] = pattern
    return sorted(found.values(), key=lambda pattern: -len(pattern.pattern))


def _is_prefix(prefix: str) -> bool:
    return bool(prefix.strip(" -─")) and not _TITLES.match(prefix) and not prefix.strip().endswith("+")


def _who(prefix: str) -> str:
    rank = _RANK.search(prefix.strip())
    if rank is not None:
        return f"rank {rank['rank'] or rank['bare']}"
    pid = _PID.search(prefix)
    return f"process {pid['pid']}" if pid is not None else ""
