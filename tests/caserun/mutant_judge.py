"""One mutant, judged: does the diagnosis name the device decision that was taken back, and does its fix mend it?"""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from . import culprit as naming
from .case import Case, collect
from .check import corrected
from .forks import ChildFailedError, in_fork
from .judge import apply
from .mutation import Marker, Mutant
from .objects import devices, difference, floats
from .session import Session, user_frames

TESTS = Path(__file__).resolve().parents[1]


@dataclass
class Program:
    name: str
    sources: dict[int, str]
    result: str  # an expression whose names hold the numbers to compare

    def as_case(self, sources: dict[int, str]) -> Case:
        """For `judge.apply`, which takes the notebook from a case."""
        return Case(Path(self.name), {"expect_after_fix": "True"}, tuple(sources.values()))


@dataclass
class Outcome:
    program: str
    mutant: str
    kind: str
    state: str  # "runs", "raises", "other error"
    culprit: str = ""  # "" is right
    place: str = ""
    cause: str = ""
    fix: str = ""
    three: bool = False  # one of the first three fixes is right
    confidence: str = ""
    said: str = ""


def programs(pattern: str, only_programs: bool) -> list[Program]:
    found = []
    for path in sorted((TESTS / "programs").glob("*.py")):
        cells = re.split(r"^# %%[^\n]*\n", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
        found.append(Program(path.stem, dict(enumerate((c.strip("\n") for c in cells), 1)), "losses"))
    if not only_programs:
        for case in collect([TESTS / "cases", TESTS / "cases" / "blind"]):
            edits = all(fix["op"] == "replace" for fix in case.header["ref_fix"])
            if edits and case.compare_numbers:
                found.append(Program(case.name, corrected(case), case.header["expect_after_fix"]))
    return [p for p in found if re.search(pattern, p.name)]


def numbers(program: Program, session: Session) -> dict[str, Any]:
    found = floats(program.result, session.namespace)
    if program.result == "losses":
        found["losses"] = np.asarray(session.namespace.get("losses", []), dtype=float)
    return found


def from_top(program: Program, sources: dict[int, str], virtual: bool) -> tuple[str, dict[str, Any]]:
    session = Session(virtual=virtual, extension=False)
    cell, run = session.run_all(sources)
    if run is not None:
        return f"cell {cell} fails: {run.error_text[:160]}", {}
    return "", numbers(program, session)


def judge(job: tuple[Program, Mutant, bool]) -> Outcome:
    program, mutant, with_fixes = job
    title = f"In [{mutant.cell}]:{mutant.line} {mutant.before[:60]} => {mutant.after[:60]}"
    outcome = Outcome(program.name, title, mutant.kind, "runs")
    session = Session(virtual=True, extension=True)
    marker = Marker(mutant, session.shell)
    cell, run = session.run_all(mutant.sources)
    if cell is None or run is None or run.error is None:
        return outcome
    import ipydevice

    with contextlib.redirect_stdout(io.StringIO()):
        diagnosis = ipydevice.explain()
    if diagnosis is None:
        outcome.state = "raises" if _about_devices(run.error) else "other error"
        outcome.culprit = outcome.place = outcome.cause = outcome.fix = "no diagnosis"
        outcome.said = run.error_text[:150]
        return outcome
    outcome.state = "raises"
    said = diagnosis.to_dict()
    outcome.confidence = said["confidence"]
    stray = marker.recorded
    frames = user_frames(run.error.__traceback__, cell)
    outcome.culprit = in_fork(culprit_right, said, mutant, stray, frames, session.namespace)
    outcome.place = place_right(said, mutant)
    allowed = causes(mutant, stray, run.error_text)
    outcome.cause = "" if said["cause"] in allowed else f"says {said['cause']}, allowed {sorted(allowed)}"
    named = said["culprit"] or {}
    where = f"{named.get('expression')} on {named.get('device')} [{named.get('cell')}]"
    outcome.said = f"{where} {said['cause']}, {said['confidence']}"
    if with_fixes:
        judge_fixes(program, mutant, session, cell, diagnosis, outcome)
    return outcome


def _about_devices(error: BaseException) -> bool:
    return bool(re.search(r"device|cuda|cpu", str(error))) and not isinstance(error, (AssertionError, NameError))


def culprit_right(
    said: dict[str, Any], mutant: Mutant, stray: list[Any], frames: naming.Frames, namespace: dict[str, Any]
) -> str:
    culprit, origin = said["culprit"], said["origin"] or {}
    if culprit is None:
        return "no culprit"
    everywhere = {device for value in stray for device in devices(value)}
    for device in culprit["device"].split(" + "):
        if device in everywhere and naming.matches(culprit, stray, device, frames, namespace):
            return ""
    same_text = naming.normal(culprit["expression"]) in map(
        naming.normal, [mutant.stray_text, *mutant.bound.split(", ")]
    )
    if same_text and culprit.get("cell") == mutant.cell:
        return ""
    made_on_the_spot = "(" in culprit["expression"] and (culprit.get("shape"), culprit["device"]) in [
        (list(value.shape), str(value.device)) for value in stray if isinstance(value, torch.Tensor)
    ]
    if made_on_the_spot:  # an argument that has no name where it is made: evaluating it would make another one
        return ""
    lines = range(mutant.line, mutant.line + mutant.after.count("\n") + 1)
    for place in (origin, culprit):  # a value derived from the stray, traced back to it, or made on that line
        if place.get("cell") == mutant.cell and place.get("line") in lines:
            return ""
    return f"names {culprit['expression']} on {culprit['device']}"


def place_right(said: dict[str, Any], mutant: Mutant) -> str:
    """The mutated cell, or an earlier one in which the same name was bound, or its class: where the value was made.

    For what a function got as an argument and no longer moves, also the cell that calls it.
    """
    cells = [(said[key] or {}).get("cell") for key in ("culprit", "origin")]
    if mutant.cell in cells:
        return ""
    for cell in cells:
        source = mutant.sources.get(cell or 0, "")
        names = {name for target, _ in naming.bindings(source) for name in _names(target)}
        names |= set(re.findall(r"^\s*(?:class|def) (\w+)", source, flags=re.MULTILINE))
        if cell and cell < mutant.cell and names & {*_names(mutant.bound), *_names(mutant.stray_text)}:
            return ""
    name = mutant.inside.rpartition(".")[2]
    given = name in ("forward", "__call__") or f"{name}(" in mutant.sources.get(cells[0] or 0, "")
    if cells[0] is not None and given and _is_an_argument(mutant):
        return ""
    return f"cells {cells}, mutated {mutant.cell}"


def _is_an_argument(mutant: Mutant) -> bool:
    """Whether the value came in as an argument of the mutated function: then nothing says whose job the move was."""
    function = re.search(
        rf"def {mutant.inside.rpartition('.')[2]}\((.*?)\)\s*(?:->[^:]*)?:",
        mutant.sources[mutant.cell],
        flags=re.DOTALL,
    )
    return function is not None and mutant.stray_text in _names(function[1])


def _names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def causes(mutant: Mutant, stray: list[Any], error: str) -> set[str]:
    """What this mutation may be called. The kind of mutation decides, then what the value is and what it is called."""
    value = stray[-1] if stray else None
    words = f"{mutant.bound} {mutant.stray_text} {mutant.inside}".lower()
    if mutant.kind == "discard":
        return {"to_result_discarded"}
    if mutant.kind == "freeze":
        return {"hardcoded_device"}
    if mutant.kind == "list":
        return {"module_in_plain_container"}
    if mutant.kind == "drop map_location":
        return {"checkpoint_location", "optimizer_state"}
    if "torch.Generator(" in mutant.stray_text:
        return {"generator_device"}
    everything = "\n".join(mutant.sources.values())
    everywhere = {"default_device_global"} if any("set_default_device" in c for c in mutant.sources.values()) else set()
    if mutant.kind in ("drop .cpu", "drop .cuda"):
        if "numpy" in error:
            return {"to_numpy"}
        if "lengths" in error:
            return {"must_be_cpu"}
        return everywhere | {"input_not_moved", "index_device", "stray_in_collection", "to_numpy"}
    named = {
        "rnn_state": r"hidden|h0|c0|memory|state",
        "loss_weight": r"weight|alpha|loss|criterion|crit",
        "label_not_moved": r"\b(y|yb|t|tgt|targ|label|target|truth|depth)",
        "stale_cache": r"cache|past|memo",
        "metric_state": r"metric|acc|confusion|recall|correct|hit",
        "ema_shadow": r"ema|shadow|avg|average|teacher",
        "closure_constant": r"hook|make_|steering",
        "optimizer_state": r"state|momentum|exp_avg|slow",
        "checkpoint_location": r"ckpt|checkpoint|saved|store|load",
    }
    allowed = everywhere | {cause for cause, pattern in named.items() if re.search(pattern, words)}
    if isinstance(value, nn.Module):
        allowed.add("model_not_moved")
        if "." in mutant.bound or re.search(rf"\.\w+ = {re.escape(mutant.bound or '?')}\b", everything):
            allowed.add("module_added_after_move")
        if mutant.inside and not mutant.inside.endswith("__init__"):
            allowed.add("module_built_in_forward")  # built anew in each call of a function
        return allowed
    if mutant.kind == "unbuffer":
        derived = {"derived_tensor_in_init"} if "self." in mutant.stray_text else set()
        return allowed | {"plain_tensor_attribute"} | derived
    if mutant.bound.startswith("self.") or "__init__" in mutant.inside:
        allowed.add("plain_tensor_attribute")
    if isinstance(value, torch.Tensor) and not value.is_floating_point():
        allowed |= {"index_device", "label_not_moved"}
    if re.search(r"\b(cat|stack|vstack|hstack|append)\b", error + words) or "argument tensors" in error:
        allowed.add("stray_in_collection")
    if re.search(
        rf"(def|lambda)\b[^:\n]*=\s*{re.escape(mutant.bound or '?')}\s*[,):]", "\n".join(mutant.sources.values())
    ):
        allowed.add("closure_constant")  # caught as a default argument
    if mutant.kind in ("drop device=", "unlike") or re.search(
        r"\b(torch\.)?(zeros|ones|full|arange|rand|randn|randint|tensor|eye|linspace)\(", mutant.stray_text
    ):
        allowed.add("fresh_tensor_no_device")
        if not mutant.inside:  # made in a cell and handed on: the taxonomy counts such probes as inputs too
            allowed.add("input_not_moved")
    if mutant.kind == "drop .to":
        allowed |= {"input_not_moved", "nested_batch_partly_moved"}
        if re.search(r"cuda:1|DEV2", error + "".join(mutant.sources.values())):
            allowed.add("model_split_multi_gpu")
        if _made_by_a_factory(mutant) or _is_an_argument(mutant):  # whose job the move was, nothing says
            allowed.add("fresh_tensor_no_device")
        if "from_numpy" in mutant.stray_text:
            allowed |= {"library_returns_cpu", "fresh_tensor_no_device"}
        if any(isinstance(held, nn.Module) for held in getattr(value, "__dict__", {}).values()):
            allowed.add("model_not_moved")  # an object that moves the modules which it holds
    return allowed


def _made_by_a_factory(mutant: Mutant) -> bool:
    """Bound to what a factory makes, or the result of one of the notebook's own functions."""
    called = re.match(r"(\w+)\(", mutant.stray_text)
    if called and any(f"def {called[1]}(" in source for source in mutant.sources.values()):
        return True
    name = re.escape(mutant.stray_text)
    made = rf"\b{name}\b[^=\n]*=[^=\n]*\btorch\.(zeros|ones|full|arange|rand|randn|randint|tensor|eye|linspace)"
    return bool(re.search(made, "\n".join(mutant.sources.values())))


def judge_fixes(
    program: Program, mutant: Mutant, session: Session, cell: int, diagnosis: Any, outcome: Outcome
) -> None:
    problem, reference = in_fork(from_top, program, mutant.sources, False)
    if problem:  # a frozen card: the host runs the program as it was
        problem, reference = in_fork(from_top, program, program.sources, False)
    if not diagnosis.fixes:
        outcome.fix = "no fix"
    for number, fix in enumerate(diagnosis.fixes[:3], 1):
        try:
            wrong = in_fork(fix_right, program, mutant, session, cell, fix, reference)
        except ChildFailedError as failed:
            wrong = str(failed).strip().splitlines()[-1]
        if number == 1:
            outcome.fix = f"{fix.title}: {wrong}" if wrong else ""
        if not wrong:
            outcome.three = True
            return


def fix_right(
    program: Program, mutant: Mutant, session: Session, cell: int, fix: Any, reference: dict[str, Any]
) -> str:
    applied = apply(program.as_case(mutant.sources), session, fix)
    if applied.problem:
        return applied.problem
    if applied.edited:
        problem, found = in_fork(from_top, program, applied.corrected, True)
        return f"from the top: {problem}" if problem else difference(found, reference)
    for number in range(cell + 1, len(mutant.sources) + 1):
        run = session.run(mutant.sources[number], f"id-{number}")
        if run.error is not None:
            return f"cell {number} fails afterwards: {run.error_text[:160]}"
    return difference(numbers(program, session), reference)
