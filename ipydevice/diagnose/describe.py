"""A live `Finding` turned into strings and numbers: the `Diagnosis` that every view shows."""

from __future__ import annotations

import ast
import re

from ipydevice import placement
from ipydevice.diagnose import marked
from ipydevice.diagnose.finding import Finding, Site, Stray
from ipydevice.diagnose.words import EXPLANATIONS, HABITS, VARIANTS
from ipydevice.diagnosis import Diagnosis, Fix, Place, Row, Subject
from ipydevice.language import clauses, joined, say
from ipydevice.messages import Mismatch

MOST_ROWS = 300
_LONG = 160  # characters of a message


def describe(finding: Finding, fixes: list[Fix], rows: list[Row], notes: list[str]) -> Diagnosis:
    """The Diagnosis of a finding; holds nothing alive."""
    mismatch, stray = finding.mismatch, finding.stray
    failed = place(finding.failed)
    culprit = _subject_of_stray(stray) if stray is not None else None
    other = _other(finding)
    origin_site = finding.told or (finding.origin.site if finding.origin is not None else None)
    cell = finding.failed.source.cell
    return Diagnosis(
        message=mismatch.text,
        family=mismatch.family,
        message_id=mismatch.id,
        headline=headline(finding),
        devices=mismatch.devices,
        op=mismatch.op,
        failed=failed,
        failed_cell_source=cell.raw if cell is not None else None,
        marks=marked.marks(finding),
        further=marked.further(finding),
        culprit=culprit,
        other=other,
        origin=place(origin_site) if origin_site is not None else None,
        cause=finding.cause,
        confidence=finding.confidence,
        evidence=tuple(finding.evidence[:3]),
        explanation=_explanation(finding),
        habit=say(HABITS.get(finding.cause, "")),
        fixes=tuple(fixes),
        placements=tuple(rows[:MOST_ROWS]),
        placements_left=max(0, len(rows) - MOST_ROWS),
        notes=(
            *([say("Not your code: {path}", path=finding.library)] if finding.library else []),
            *notes,
            *_twins(finding),
        ),
    )


def describe_text(mismatch: Mismatch, notes: list[str]) -> Diagnosis:
    """What the message alone tells, what it leaves open, and how to find that out."""
    innermost = mismatch.frames[-1] if mismatch.frames else None
    failed = (
        Place(file=innermost.file, line=innermost.line, source=innermost.source, function=innermost.function)
        if innermost
        else Place()
    )
    absent = mismatch.kind == "availability"
    return Diagnosis(
        message=mismatch.text,
        family=mismatch.family,
        message_id=mismatch.id,
        headline=_told(mismatch),
        devices=mismatch.devices,
        op=mismatch.op,
        failed=failed,
        cause="no_accelerator" if absent else "unknown",
        confidence="likely" if absent else "guess",
        explanation=_meant(mismatch),
        notes=(*_open_questions(mismatch), *notes),
    )


def _told(mismatch: Mismatch) -> str:
    """``mat1 is on cpu, self is on cuda:0``, in the names of PyTorch's own arguments; else the message's first line."""
    roles = [(name, device) for name, device in mismatch.roles.items() if device]
    if mismatch.argument in mismatch.roles:
        roles.sort(key=lambda role: role[0] != mismatch.argument)
    if len(roles) > 1:
        return clauses(say("{name} is on {device}", name=name, device=device) for name, device in roles[:2])
    if len(mismatch.devices) > 1:
        devices = say(" and ").join(mismatch.devices)
        if not mismatch.op:
            return say("tensors on {devices} meet", devices=devices)
        return say("tensors on {devices} meet in {op}", devices=devices, op=mismatch.op)
    return _own_line(mismatch)


def _own_line(mismatch: Mismatch) -> str:
    """The first line of the message; of one that a worker's traceback stands in, the line that the worker raised."""
    lines = mismatch.text.strip().splitlines()
    if not lines:
        return mismatch.family
    if lines[0].startswith("Caught ") and mismatch.wrapped_in is not None:
        said = next((line for line in reversed(lines) if re.match(r"[A-Za-z_][\w.]*: ", line)), lines[0])
        return said.partition(": ")[2] or lines[0]
    return _first_sentence(lines[0])


def _first_sentence(line: str) -> str:
    """Of a text that goes on for a page, as what PyTorch says of an operator that a backend does not have."""
    first, dot, _ = line.partition(". ")
    return first if dot and len(line) > _LONG else line


def _meant(mismatch: Mismatch) -> str:
    if mismatch.kind == "availability":
        return _absent(mismatch)
    meaning = say(mismatch.meaning)
    if not _has_order(mismatch):
        return meaning
    order = say(", then ").join(map(say, mismatch.order.split(", then ")))
    return say("{meaning}; the devices are named in this order: {order}", meaning=meaning, order=order)


def _absent(mismatch: Mismatch) -> str:
    """Why there is no such device: it is not here, or none has such a name."""
    return say(VARIANTS["no_such_name"] if mismatch.id in _NAMES else EXPLANATIONS["no_accelerator"])


_NAMES = ("PT120", "PT121", "PT122")  # messages about the text that names a device


def _has_order(mismatch: Mismatch) -> bool:
    return bool(mismatch.order) and not mismatch.order.startswith("none")


def _open_questions(mismatch: Mismatch) -> list[str]:
    if mismatch.kind == "availability":
        return []
    unknown = (
        [say("the message does not tell {unknown}", unknown=_one_of(mismatch.unknown))] if mismatch.unknown else []
    )
    return [*unknown, say("to find out, run the cell again under %%devicecheck, or with ipydevice loaded")]


def _one_of(unknown: tuple[str, ...]) -> str:
    *first, last = map(say, unknown)
    return say("{items} or {last}", items=joined(first), last=last) if first else last


def headline(finding: Finding) -> str:
    """``labels is on cpu, logits is on cuda:0``"""
    stray, other = finding.stray, finding.other
    if stray is None:
        return _own_line(finding.mismatch)
    mine = say("{name} is on {device}", name=stray.expression, device=stray.device)
    if finding.host_required:
        return say("{found}, it has to be on {target}", found=mine, target=finding.target)
    if other is not None and other.device:
        return clauses((mine, say("{name} is on {device}", name=other.expression, device=other.device)))
    return say("{found}, it should be on {target}", found=mine, target=finding.target) if finding.target else mine


def place(site: Site) -> Place:
    """The line on which a node begins."""
    source = site.source
    line = getattr(site.node, "lineno", None)
    if isinstance(site.node, ast.comprehension):
        line = site.node.iter.lineno
    function = source.function(site.node)
    return Place(
        cell=source.cell.number if source.cell is not None else None,
        cell_id=source.cell.cell_id if source.cell is not None else None,
        file=source.file,
        line=source.raw_line(line) if line is not None else None,
        source=source.line_text(line) if line is not None else "",
        function=getattr(function, "name", None),
    )


def _subject_of_stray(stray: Stray) -> Subject:
    is_tensor = stray.known and placement.is_tensor(stray.value)
    return Subject(
        expression=stray.expression,
        device=stray.device,
        kind=stray.kind,
        path=stray.path,
        shape=placement.shape_of(stray.value) if is_tensor else None,
        dtype=placement.dtype_of(stray.value) if is_tensor else None,
        place=place(stray.site),
    )


def _other(finding: Finding) -> Subject | None:
    other = finding.other
    if finding.host_required or (finding.mismatch.family == "generator" and other is None):
        return Subject(expression=say("the host"), device="cpu (required)", kind="rule", place=place(finding.failed))
    if other is None or other.device is None:
        return None
    is_tensor = other.known and placement.is_tensor(other.value)
    return Subject(
        expression=other.expression,
        device=other.device,
        kind=other.kind,
        shape=placement.shape_of(other.value) if is_tensor else None,
        dtype=placement.dtype_of(other.value) if is_tensor else None,
        place=place(other.site) if other.site is not None else Place(),
    )


def _explanation(finding: Finding) -> str:
    stray = finding.stray
    if stray is None:
        return _absent(finding.mismatch) if finding.cause == "no_accelerator" else say(finding.mismatch.meaning)
    cause = finding.cause
    origin = finding.origin.site if finding.origin is not None else stray.site
    if finding.told is not None:
        origin = finding.told
        cause = "moved_away" if cause in ("model_not_moved", "framework_moved_model") else cause
    named = isinstance(stray.site.node, (ast.Name, ast.Attribute))
    if finding.origin is None and named and not stray.known and "{origin}" in EXPLANATIONS.get(cause, ""):
        cause = "origin_not_shown"  # a text, and the lines printed begin below
    if cause == "plain_tensor_attribute" and stray.owner is not None and not placement.is_module(stray.owner):
        cause = "attribute_of_no_module"
    if cause == "loss_weight" and stray.via == "attribute" and placement.is_module(stray.owner):
        cause = "plain_tensor_attribute"
    if cause == "dp_replica_state" and stray.via in ("parameter", "buffer", "module"):
        cause = "bound_to_the_first_replica"
    if cause == "ddp_wrong_device" and finding.mismatch.family == "dataparallel":
        cause = "dp_in_a_process"
    loop = next((step.site for step in finding.chain if step.how == "loop"), None)
    if finding.cause in ("input_not_moved", "label_not_moved", "nested_batch_partly_moved") and loop is not None:
        origin = loop
    at = place(origin)
    return say(
        VARIANTS.get(cause) or EXPLANATIONS.get(cause) or EXPLANATIONS["unknown"],
        stray=stray.expression,
        other=finding.other.expression if finding.other is not None else say("the rest"),
        device=stray.device,
        target=finding.target or say("the other device"),
        origin=at.source,
        where=str(at),
        owner=placement.class_name(type(stray.owner)) if stray.owner is not None else say("the object"),
        kind=stray.kind,
        attribute=stray.attribute or stray.expression,
    )


def _twins(finding: Finding) -> list[str]:
    cell = finding.failed.source.cell
    if cell is None:
        return []
    others = {
        twin.number for twin in finding.history.twins(cell) if twin.cell_id != cell.cell_id or cell.cell_id is None
    }
    others.discard(cell.number)
    if not others or cell.cell_id is None:
        return []
    return [say("the same text also ran as {cells}", cells=joined(f"In [{n}]" for n in sorted(others)))]
