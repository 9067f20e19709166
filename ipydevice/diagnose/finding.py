"""What is known while the error is still alive.

A `Finding` holds frames, tensors and syntax trees, so it lives for the length of one
diagnosis only: `ipydevice.postmortem` makes it, lets the fixes read it, turns it into
strings (`ipydevice.diagnosis.Diagnosis`) and drops it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

from ipydevice import placement
from ipydevice.cells import CellHistory
from ipydevice.diagnose.source import Source
from ipydevice.diagnosis import Confidence
from ipydevice.messages import Mismatch

How = Literal[
    "assignment",  # x = <value>; the node is the statement
    "loop",  # for x, y in loader; the node is the For, or the comprehension
    "argument",  # came in as an argument; the node is the call in the frame outside
    "attribute",  # self.x = <value>, in a method of the class or on the instance in a cell
    "item",  # d["q"] = <value>, xs.append(<value>), d.update(...)
    "return",  # came out of a user function; the node is its return statement
    "closure",  # caught by a nested function, lambda or default argument
    "with",  # with ... as x
    "expression",  # made on the spot, bound to no name; the node is the expression
    "move",  # the statement that last moved it: model.to(...), trainer.fit(model)
    "import",  # from a user's module
]


# Causes of values that somebody hands on: the place to show is the helper whose job it was to move them.
HANDED_ON = frozenset(("input_not_moved", "label_not_moved", "nested_batch_partly_moved", "index_device"))

# Causes in which the `to` of the object that holds the stray is the place to show, where it has one.
MOVED_AS_A_WHOLE = frozenset(("input_not_moved", "label_not_moved", "nested_batch_partly_moved", "hardcoded_device"))

# Causes in which an object keeps the stray: the place to show is where it was put there.
KEPT = frozenset(
    ("plain_tensor_attribute", "module_in_plain_container", "derived_tensor_in_init", "rnn_state", "stale_cache")
)


@dataclass(slots=True)
class Site:
    """A node in one of the user's texts, and the live frame that runs this text, if any does."""

    source: Source
    node: ast.AST
    frame: FrameType | None = None


@dataclass(slots=True)
class Step:
    """One step on the way from the place of failure to the place where the value was made."""

    how: How
    site: Site
    value: ast.expr | None = None  # the right-hand side, iterable, argument or returned expression
    part: int | None = None  # which element of the value it is, where an unpacking tells


@dataclass(slots=True)
class Operand:
    """One operand of the call that failed, on the user's line or in a library frame."""

    site: Site | None  # None: only in a library frame
    expression: str
    device: str | None  # None: not known and not told by the message
    value: Any = None
    known: bool = False  # value is the live object
    kind: str = "tensor"
    role: str = ""  # the library's name for it: "input", "weight", "target"


@dataclass(slots=True)
class Stray:
    """The thing on the wrong device, where the user should look first."""

    site: Site  # site.node is an expression in the user's text
    member: str  # what follows the node's text: "" or ".weight" or ".state[p]['exp_avg']"
    device: str
    kind: str = "tensor"
    value: Any = None  # the live object, when it is still reachable
    known: bool = False
    owner: Any = None  # the module or object that directly holds it, when it is state of one
    attribute: str = ""  # its name or path in the owner: "pe", "weight", "heads['age']"
    via: str = ""  # how the owner holds it: parameter, buffer, module, attribute, item, state
    path: str | None = None
    role: str = ""  # its part in the failing call: "index", "target", "left", ...

    @property
    def expression(self) -> str:
        return self.site.source.segment(self.site.node) + self.member


@dataclass(slots=True)
class Finding:
    """All that the fixes need to know."""

    mismatch: Mismatch
    failed: Site  # the running statement or expression of the innermost frame of the user's
    history: CellHistory
    namespace: dict[str, Any]
    start: Site | None = None  # the outermost frame of the user's; None where only a text is at hand
    stray: Stray | None = None
    taken: Operand | None = None  # the stray as it stands on the failing line
    other: Operand | None = None  # what the stray met
    operands: list[Operand] = field(default_factory=list)
    target: str | None = None  # the device on which the stray should be: "cuda:0", "cpu"
    host_required: bool = False  # a rule wants the host: lengths, numpy, indices
    chain: list[Step] = field(default_factory=list)  # from the stray outwards, the origin last
    helper: Step | None = None  # the return statement of a function that moves things and handed the stray on
    owner_chain: list[Step] = field(default_factory=list)  # how the object holding the stray was made
    cause: str = "unknown"
    confidence: Confidence = "guess"
    evidence: list[str] = field(default_factory=list)
    told: Site | None = None  # the line that the explanation points at, where it is not the origin
    read: Callable[[Site], str | None] | None = None  # of a text: the device of a place, as far as its code tells
    library: str | None = None  # set where no code of the user's can be right

    @property
    def origin(self) -> Step | None:
        """Where the stray was made; for what an object keeps, where it was put there."""
        if self.cause in KEPT:
            put = next((step for step in self.chain if step.how in ("attribute", "item")), None)
            if put is not None:
                return put
        if self.cause in HANDED_ON and self.helper is not None:
            return self.helper
        registered = self.stray is not None and self.stray.kind in ("module", "parameter", "buffer")
        if self.cause == "model_not_moved" and registered and self.owner_chain:
            handed = self.stray is not None and not placement.is_module(self.stray.owner)
            if not (handed and any(step.how == "argument" for step in self.chain)):
                return self.owner_chain[-1]  # `.to()` is said of the whole model, where that is made
        return self.chain[-1] if self.chain else None
