"""One thing that is odd, and the code that mends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ipydevice.diagnosis import Fix
from ipydevice.language import say


@dataclass(frozen=True, slots=True)
class Clue:
    """What finding the source of an oddity in the cells takes; strings only."""

    cause: str  # as in the taxonomy of `ipydevice.diagnose`: "plain_tensor_attribute"
    path: str  # the stray as reached from the workspace: "net[1].pe"
    device: str  # where it is
    target: str  # where it should be
    owner: str = ""  # what keeps it: "net[1]"
    attribute: str = ""  # its name there: "pe"
    beside: str = ""  # another name of the workspace that it depends on: the model of an optimizer


@dataclass(frozen=True, slots=True)
class Oddity:
    """What is odd about an object, in a few words with the remedy."""

    words: str
    code: str = ""  # mends the objects as they are now; empty where only an edit of the program can
    note: str = ""  # what the code does not do, or costs
    clues: tuple[Clue, ...] = ()  # where an edit of the cells may mend it for good; the first that leads to one counts
    copy: str = ""  # where code alone cannot: what to write, with names that the user has to fill in


def words_of(oddities: Iterable[Oddity]) -> str:
    """All of them in one line."""
    return say("; ").join(one.words for one in oddities)


def code_of(oddities: Iterable[Oddity]) -> str:
    """The code of all of them."""
    return "\n".join(dict.fromkeys(one.code or one.copy for one in oddities if one.code or one.copy))


def fixes_of(odd: Iterable[tuple[str, Iterable[Oddity]]]) -> Iterator[Fix]:
    """A fix for each oddity that code can mend, by the names of the objects."""
    done: set[str] = set()
    for name, oddities in odd:
        for one in oddities:
            if one.code and one.code not in done:
                done.add(one.code)
                note = one.note or say("for the objects as they are now")
                yield Fix(_title(name, one.code), "repair", setup=one.code, note=note)


def _title(name: str, code: str) -> str:
    return f"`{code}`" if "\n" not in code and len(code) <= 60 else say("Mend {name}", name=name)
