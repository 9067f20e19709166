"""What a diagnosis says: the one contract between finding out and showing.

Everything here is strings, numbers and tuples of them.  No tensor, frame or exception
is ever kept, so that a diagnosis costs no memory of the accelerator and can be saved
beside the notebook as JSON.
"""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass, field
from typing import Any, Literal

from ipydevice.language import say

MIME_TYPE = "application/vnd.ipydevice.v1+json"  # docs/json.md

Confidence = Literal["certain", "likely", "guess"]
FixKind = Literal["edit", "repair", "patch", "guard"]


@dataclass(frozen=True, slots=True)
class Place:
    """One line of the user's: in a cell (``In [n]``) or in a file."""

    cell: int | None = None  # execution number, the n of In [n]
    cell_id: str | None = None  # the front end's id of that cell; nbclient and IPython 7 have none
    file: str | None = None
    line: int | None = None  # 1-based, in the text as the user wrote it
    source: str = ""  # that line, without its indentation
    function: str | None = None

    def __str__(self) -> str:
        where = f"In [{self.cell}]" if self.cell is not None else (self.file or "?")
        return where if self.line is None else say("{where}, line {line}", where=where, line=self.line)


@dataclass(frozen=True, slots=True)
class Subject:
    """A tensor, module or other thing with a device, in the user's own words."""

    expression: str  # evaluated at `place`: "labels", "loss_fn.weight", "optimizer.state[p]['exp_avg']"
    device: str  # "cuda:0"; "cuda:0 + cpu" for a module on two; "cpu (required)" where a rule wants the host
    kind: str = "tensor"  # tensor, parameter, buffer, module, optimizer, generator, array, ...
    path: str | None = None  # the same object reached from the workspace, when there is a way
    shape: tuple[int, ...] | None = None
    dtype: str | None = None  # "float32"
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Mark:
    """One operand of the failing call, as columns of `Diagnosis.failed.source` (0-based, end exclusive)."""

    start: int
    end: int
    device: str
    expression: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    stray: bool = False


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """A further line of the failing call, with the operands that stand on it."""

    line: int
    source: str  # without indentation
    marks: tuple[Mark, ...]
    indent: int = 0  # columns that it is indented further than the failing line


@dataclass(frozen=True, slots=True)
class Edit:
    """New whole text for one cell or file; refused where the text there is no longer `before`."""

    before: str
    after: str
    cell: int | None = None
    cell_id: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Rerun:
    """A cell to run again."""

    cell: int | None
    cell_id: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to mend it. Applying means: replace the texts, run `setup`, run `rerun` in order."""

    title: str
    kind: FixKind
    edits: tuple[Edit, ...] = ()
    setup: str | None = None  # code for a new cell below the failed one
    rerun: tuple[Rerun, ...] = ()  # complete and in order, the failed cell last
    note: str = ""  # what differs, what it costs, what is not safe to repeat
    checked: bool = False  # compiled, names exist, nothing else changed, operands would meet
    diff: str | None = None  # unified diff of a patch


@dataclass(slots=True, unsafe_hash=True)
class Row:
    """One line of the table: a tensor, module, optimizer or container by name.

    Nobody changes one, but a frozen dataclass takes seven times as long to make, and a workspace may have 100,000.
    """

    name: str
    kind: str
    device: str
    frame: str = ""  # "In [7] train()", "torch/nn/modules/linear.py forward()", "" for the workspace
    user: bool = True  # the frame is the user's own
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    bytes: int | None = None
    odd: str = ""  # what is odd about it, in a few words
    note: str = ""  # facts that are not odd: "view of x", "shares storage with y"
    requires_grad: bool = False
    remedy: str = ""  # code that mends what is odd, for a new cell
    layers: tuple[Layers, ...] = ()  # of a module on several devices
    at_least: bool = False  # more is inside than was looked at: `bytes` and the numbers in `note` are lower bounds


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers of a module that follow each other on one device."""

    device: str
    count: int
    first: str  # path of the first of them: "encoder.layers[0]"
    last: str


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Who holds the memory of one device, in bytes; each storage counts for the first that holds it."""

    device: str
    named: int = 0  # what the user's names lead to, with gradients
    output: int = 0  # of the rest, what Out[] and _ hold
    error: int = 0  # of the rest, what the frames of the last error hold
    allocated: int | None = None  # by torch in this process; None where torch does not tell
    reserved: int | None = None  # by torch, with its cache
    used: int | None = None  # on the card, by all processes
    total: int | None = None
    holders: tuple[tuple[str, int], ...] = ()  # the largest in `output` and `error`: "Out[3]", "x in train()"
    at_least: tuple[str, ...] = ()  # which of `named`, `output` and `error` are lower bounds


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A device error, explained. `to_dict` has stable keys; views are functions of this alone."""

    message: str  # the error's text as raised
    family: str  # family of the message catalogue: "common_check", "conv", "numpy", ...
    headline: str  # "labels is on cpu, logits is on cuda:0"
    message_id: str = ""  # id of the template in the catalogue: "PT001"
    devices: tuple[str, ...] = ()  # as the message states them
    op: str | None = None
    failed: Place = Place()
    failed_cell_source: str | None = None
    marks: tuple[Mark, ...] = ()
    further: tuple[MarkedLine, ...] = ()
    culprit: Subject | None = None
    other: Subject | None = None
    origin: Place | None = None
    cause: str = "unknown"  # a class name of the taxonomy
    confidence: Confidence = "guess"
    evidence: tuple[str, ...] = ()
    explanation: str = ""
    habit: str = ""  # what prevents this kind of bug
    fixes: tuple[Fix, ...] = ()
    placements: tuple[Row, ...] = ()
    placements_left: int = 0  # rows beyond the first 300
    notes: tuple[str, ...] = ()  # "not your code", twins of the cell, stages that failed

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with `place` folded into its owner: ``culprit["cell"]``, ``culprit["line"]``."""
        plain: dict[str, Any] = _plain(self)
        plain["failed"]["cell_source"] = plain.pop("failed_cell_source")
        return plain

    def __str__(self) -> str:
        from ipydevice import show

        return show.string(self)

    def _ipython_display_(self) -> None:
        """Where a cell ends with it, the panel is shown and not its fields."""
        from ipydevice import show  # a room below this one, so only when asked

        show.display(self)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        out: dict[str, Any] = {}
        for item in dataclasses.fields(value):
            inner = _plain(getattr(value, item.name))
            if item.name == "place":
                out.update(inner)
            else:
                out[item.name] = inner
        return out
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


@dataclass(frozen=True, slots=True)
class Inventory:
    """The rows of a namespace or of a checkpoint file, with bytes by device."""

    rows: tuple[Row, ...] = ()
    bytes_by_device: dict[str, int] = field(default_factory=dict)
    left: int = 0  # rows not listed, beyond the limit
    title: str = ""  # "model.pt: 12 tensors"; by default the number of names
    notes: tuple[tuple[str, str], ...] = ()  # labelled sentences above the rows
    fixes: tuple[Fix, ...] = ()  # of what is odd, and of memory that can be freed
    memory: tuple[DeviceMemory, ...] = ()
    at_least: bool = False  # there is more than was looked at: `bytes_by_device` and `left` are lower bounds

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with stable keys."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`, its index their names. Raises ImportError where pandas is missing."""
        pandas = importlib.import_module("pandas")
        columns = [item.name for item in dataclasses.fields(Row) if item.name != "layers"]
        table = [[getattr(row, column) for column in columns] for row in self.rows]
        return pandas.DataFrame(table, columns=columns).set_index("name")

    def _repr_html_(self) -> str:
        from ipydevice import show

        return show.html(self)

    def __str__(self) -> str:
        from ipydevice import show

        return show.string(self)

    def _ipython_display_(self) -> None:
        """Where a cell ends with it, the table is shown and not its fields."""
        from ipydevice import show  # a room below this one, so only when asked

        show.display(self)
