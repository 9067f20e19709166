"""Templates of error texts: the text itself with marked places, far easier to read than a regular expression.

    Input type ({type:input}) and weight type ({type:weight}) should be the same

A place is ``{kind:role}`` or ``{kind}``.  A role is a name, ``named`` for the device of the argument that
the message is about, ``reference`` for the one it is compared with, or both: ``mask/named`` (``found`` is
``named`` where the name is no argument's); ``/reference`` takes its name from a ``{role}`` place.  Kinds:

    device   a device as printed in any way             type     a tensor type: torch.cuda.FloatTensor
    known    a device of a type in `devices.KNOWN`, where any other word could stand
    cpu      the CPU, where only it tells one template from another
    index    a bare device index, -1 for the CPU        raw      an index printed as one raw character
    enum     a tensor type: CUDAFloatType
    dlpack   a DLPack pair: 2, 0                        ctype    a number of c10::DeviceType
    devices  a list or set of devices                   arg      the argument that the message names
    method   a wrapper name: wrapper_CUDA_addmm         op       an op: aten.add.Tensor
    number   the index of the device before it          role     a word that names the role of a later device
    word, int, any   text that says nothing about devices

``[[ ]]`` is text that may be missing; ``<<a|b>>`` is either text; ``<<=text>>`` is text whose case
counts; ``^`` and ``$`` at the ends tie the template to the whole message.  Blanks match any white
space, letters match without regard to case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipydevice.messages import devices

_PLACE = re.compile(r"<<(.+?)>>|\{(\w+)(?::([\w/.]+))?\}|(\[\[)|(\]\])")
_PATTERNS = {
    "device": devices.DEVICE,
    "known": rf"['\"`]?(?:{'|'.join(devices.KNOWN)}|gpu)(?::-?\d+)?['\"`]?",
    "cpu": r"cpu",
    "type": r"[\w.:\[\]]*[\w\]]",
    "enum": r"[A-Za-z]\w*Type",
    "index": r"-?\d+",
    "raw": r"\d+|.?",
    "dlpack": r"\d+(?:,\s*-?\d+)?",
    "ctype": r"\d+",
    "devices": r".+?",
    "arg": r"[\w.]+(?:\[[^\]\n]{0,60}\][\w.]*)*",
    "method": r"[\w.:]*\w(?:\(\))?:?",
    "op": r"[\w.:]+",
    "role": r"\w+",
    "word": r"\S+?",
    "int": r"-?\d+",
    "number": r"\d+",
    "any": r".*?",
}
# places that state one device each
DEVICES = ("device", "known", "cpu", "type", "enum", "index", "raw", "dlpack", "ctype")
SPACE = re.compile(r"[ \t\n\r\f\v]+")


@dataclass(frozen=True, slots=True)
class Place:
    kind: str
    role: str


def places(template: str) -> list[Place]:
    """The marked places, from left to right."""
    return [Place(m[2], m[3] or "") for m in _PLACE.finditer(template) if m[2]]


def anchor(template: str) -> str:
    """The longest piece that every match contains, in small letters: a cheap test before any matching."""
    depth, start, pieces = 0, 0, []
    for mark in _PLACE.finditer(template):
        if depth == 0:
            pieces.append(template[start : mark.start()])
        depth += bool(mark[4]) - bool(mark[5])
        start = mark.end()
    pieces.append(template[start:])
    return max((SPACE.sub(" ", piece.strip("^$")).strip().lower() for piece in pieces), key=len)


def weight(template: str) -> int:
    """How much literal text there is."""
    return len(_PLACE.sub("", template))


def pattern(template: str) -> re.Pattern[str]:
    """The regular expression; place number i is group ``p{i}``."""
    out, start, count = [], 0, 0
    head, tail = template.startswith("^"), template.endswith("$")
    body = template[head : len(template) - tail]
    for mark in _PLACE.finditer(body):
        out.append(_literal(body[start : mark.start()]))
        if mark[1]:
            choices = "|".join(_literal(choice) for choice in mark[1].lstrip("=").split("|"))
            out.append(f"(?-i:{choices})" if mark[1].startswith("=") else f"(?:{choices})")
        elif mark[2]:
            out.append(f"(?P<p{count}>{_PATTERNS[mark[2]]})")
            count += 1
        else:
            out.append("(?:" if mark[4] else ")?")
        start = mark.end()
    out.append(_literal(body[start:]))
    return re.compile(("^" if head else "") + "".join(out) + ("$" if tail else ""), re.IGNORECASE | re.DOTALL)


def _literal(text: str) -> str:
    return re.sub(r"(?:\\ )+", r"\\s+", re.escape(SPACE.sub(" ", text)))
