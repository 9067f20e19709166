"""Tracebacks as IPython prints them, in saved notebooks, forum posts and nbclient's errors.

Cell In[7], line 5, in step(batch)          since 8.5; "Input In [7], in <cell line: 5>()" from 8.0 to 8.4
      3 images = images.to(device)
----> 5 loss = criterion(logits, labels)

File ~/site-packages/torch/nn/functional.py:3029, in cross_entropy(input, target)
<ipython-input-7-0a1b> in step(batch)        up to 7, as in Colab
"""

from __future__ import annotations

import re

from ipydevice.messages.mismatch import TextFrame

_HEAD = re.compile(
    r"""^(?:(?:Cell|Input)\ In\ ?\[(?P<cell>\d+)\](?:,\ line\ (?P<cell_line>\d+))?
         (?:,?\ in\ <cell\ line:\ ?(?P<body>\d+)>\(\)|,?\ in\ (?P<cell_function>[\w.<>]+)\(.*)?
    |File\ (?P<file>.+?):(?P<file_line>\d+)(?:,\ in\ (?P<file_function>[\w.<>]+).*)?
    |(?P<old>[~/<\w].*?)\ in\ (?P<old_function>[\w.<>]+)\(.*\))\s*$""",
    re.VERBOSE,
)
_ARROW = re.compile(r"^-+> ?(?P<line>\d+) (?P<source>.*)$")
_CODE = re.compile(r"^\s+\d+ |^\s*\d+ *$")
_OLD_CELL = re.compile(r"<ipython-input-(\d+)-")
_MESSAGE = re.compile(r"^(?P<type>[A-Za-z_][\w.]*): (?P<text>.*)", re.DOTALL)


def is_one(text: str) -> bool:
    """Whether the text has the arrow that only IPython prints."""
    return re.search(r"^-{2,}> ?\d+ ", text, re.MULTILINE) is not None


def frames_and_message(text: str) -> tuple[tuple[TextFrame, ...], str, str]:
    """The frames, the outermost first; the type of the exception; its message."""
    lines = text.splitlines()
    frames: list[TextFrame] = []
    head: re.Match[str] | None = None
    end = 0
    for number, line in enumerate(lines):
        found = _HEAD.match(line)
        arrow = _ARROW.match(line)
        if found is not None:
            head = found
        elif arrow is not None and head is not None:
            frames.append(_frame(head, arrow))
            head = None
        if found is not None or arrow is not None or _CODE.match(line):
            end = number + 1
    message = _MESSAGE.match("\n".join(lines[end:]).strip())
    if message is None:
        return tuple(frames), "", ""
    return tuple(frames), message["type"].rpartition(".")[2], message["text"].strip()


def _frame(head: re.Match[str], arrow: re.Match[str]) -> TextFrame:
    old = _OLD_CELL.match(head["old"] or "")
    cell = head["cell"] or (old and old[1])
    file = f"In [{cell}]" if cell else head["file"] or head["old"]
    function = head["cell_function"] or head["file_function"] or head["old_function"] or "<module>"
    return TextFrame(file, int(arrow["line"]), function, arrow["source"].strip())
