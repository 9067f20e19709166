"""The one tree that every view is lowered from: text, static HTML and widget say the same.

Leaves are plain strings as they came from the user's session; escaping is the business
of each view (`ipydevice.show.escape`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

from ipydevice.diagnosis import Mark, MarkedLine

Tone = Literal["error", "plain"]
CHANGES = 4  # lines of code below each fix that is typed by hand


@dataclass(frozen=True, slots=True)
class Heading:
    """What is wrong, in one line; `aside` is the small print at its right."""

    text: str
    aside: str = ""
    tone: Tone = "error"


@dataclass(frozen=True, slots=True)
class Code:
    """A line of the user's with its operands marked, and further lines of the same call that hold some."""

    label: str  # "In [7], line 5"
    source: str
    marks: tuple[Mark, ...] = ()
    further: tuple[MarkedLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """A labelled paragraph. `code in backticks` is set as code."""

    label: str
    text: str
    optional: bool = False  # left out of the text view where it would make the panel too long


@dataclass(frozen=True, slots=True)
class Folded:
    """Remarks that only HTML has room for, behind a summary."""

    summary: str
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a change: kind is "+", "-", " " or "@" (a heading)."""

    kind: str
    text: str
    aside: bool = False  # only HTML has room for it


@dataclass(frozen=True, slots=True)
class Option:
    """One numbered fix."""

    number: int
    title: str
    reruns: tuple[str, ...]  # "In [2]", "In [7]"
    command: str  # "%devicefix 1"
    note: str
    diff: tuple[DiffLine, ...]
    main: str  # what the main button says: "fix & re-run In [2], In [7]"


@dataclass(frozen=True, slots=True)
class Options:
    """The fixes; the text view shows at most `changes` changed lines of each, 0: of the first, as room allows."""

    options: tuple[Option, ...]
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Bar:
    """How much one device holds. `share` is in 0..1 of all bytes joined."""

    device: str
    amount: str
    share: float


@dataclass(frozen=True, slots=True)
class Bars:
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """Layers of a module that follow each other on one device."""

    device: str
    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The layers of a module that is split over devices, in their order."""

    name: str
    segments: tuple[Segment, ...]


@dataclass(slots=True, unsafe_hash=True)  # not frozen for the reason that `Row` has
class Entry:
    """One line of the table; a `header` line names a frame and folds what follows with a greater level."""

    name: str
    kind: str = ""
    device: str = ""
    shape: str = ""
    dtype: str = ""
    bytes: int | None = None
    remark: str = ""
    odd: bool = False
    level: int = 1  # 1-based depth, as aria-level
    header: bool = False
    open: bool = True  # whether the entries below it are shown at first
    at_least: bool = False  # `bytes` is a lower bound


def worth(odd: bool, level: int) -> int:
    """The lesser the better, where not all entries can be shown: what is odd anywhere, then the outer ones."""
    return 0 if odd else level


@dataclass(frozen=True, slots=True)
class Entries(Sequence[Entry]):
    """Entries that are made when they are looked at: a text shows forty of a hundred thousand."""

    worths: Sequence[int]  # as `worth` has them
    make: Callable[[int], Entry]

    def __len__(self) -> int:
        return len(self.worths)

    def __iter__(self) -> Iterator[Entry]:
        return map(self.make, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        numbers = range(len(self))[index]
        return self.make(numbers) if isinstance(numbers, int) else tuple(map(self.make, numbers))


@dataclass(frozen=True, slots=True)
class Table:
    """Names and where they live. `folded`: only the summary is shown at first."""

    summary: str
    entries: Sequence[Entry]
    left: int = 0  # entries that exist but aren't joined
    folded: bool = True
    at_least: bool = False  # there are more than `left`
    aside: str = ""
    most: int | None = None  # entries that a person wants at most; None leaves it to the view

    def within(self, limit: int) -> Table:
        """At most `most` entries, else `limit`: what is odd anywhere, the outer ones, then deeper ones in order."""
        limit = self.most or limit
        if len(self.entries) <= limit:
            return self
        entries = self.entries
        worths = entries.worths if isinstance(entries, Entries) else [worth(one.odd, one.level) for one in entries]
        by_worth = sorted(range(len(worths)), key=worths.__getitem__)  # stable: of equal ones the first stay
        kept = tuple(self.entries[i] for i in sorted(by_worth[:limit]))
        return replace(self, entries=kept, left=self.left + len(self.entries) - len(kept))


Block = Heading | Code | Remark | Folded | Options | Bars | Strip | Table


@dataclass(frozen=True, slots=True)
class Panel:
    label: str  # name of the whole for a screen reader
    blocks: tuple[Block, ...]
    lines: int | None = None  # at most so many in the text view, where leaving out notes can do it
    fold: Fold | None = None  # this line stands for the whole until somebody opens it

    def without_magics(self) -> Panel:
        """As it is where no shell takes `%devicefix`: nothing applies a fix, so a person types its code."""
        blocks = tuple(
            Options(tuple(replace(option, command="") for option in block.options), changes=CHANGES)
            if isinstance(block, Options)
            else block
            for block in self.blocks
        )
        return replace(self, blocks=blocks, lines=None)


@dataclass(frozen=True, slots=True)
class Fold:
    """The one line of a folded panel; `command` shows the whole where nothing can be opened."""

    text: str
    aside: str
    command: str
