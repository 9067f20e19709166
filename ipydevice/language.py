"""The language that panels speak. English sentences stand where they are said, and are the ids of their translations.

``say("move {name} beside the others", name=name)`` looks the sentence up in the catalogue of the language in use,
``translations/zh.tsv`` for Chinese, and fills the places in braces afterwards. In English nothing is read.
Keys that a program reads, such as causes, never pass here, and nothing decides by what was said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

SPOKEN = ("en", "zh")
LANGUAGES = ("auto", *SPOKEN)  # "auto" is that of the locale
_PLACE = re.compile(r"\{(\w+)\}")
_SPACED_PLACE = re.compile(r"( ?)\{(\w+)\}( ?)")
_IN_SCRIPT = re.compile(r"\bsay\(\s*'((?:[^'\\]|\\.)*)'")
_IDEOGRAPH = re.compile("[\u3000-\u9fff\uff00-\uff60]")
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides, as POSIX has it
_HERE = Path(__file__).parent / "translations"

Sentence: TypeAlias = str  # of a text that is given to `say` later: `_RAISED: Sentence = "…"`, `Sentence("…")`

_wish = "auto"
_catalogue: dict[str, str] | None = None  # of the language in use, read when something is first said


def use(language: str) -> None:
    """Speak one of `LANGUAGES` from now on, in this process."""
    global _wish, _catalogue
    _wish, _catalogue = language, None


def in_use() -> str:
    """The language spoken: never "auto"."""
    return of_locale() if _wish == "auto" else _wish


def of_locale() -> str:
    """The language of the locale where we speak it, else English."""
    locale = next(filter(None, map(os.environ.get, _VARIABLES)), "")
    language = re.split(r"[_.@-]", locale, maxsplit=1)[0].lower()
    return language if language in SPOKEN else "en"


def say(sentence: Sentence, /, **places: object) -> str:
    """`sentence` in the language in use, its ``{places}`` filled."""
    said = translations().get(sentence)
    if not places:
        return sentence if said is None else said
    if said is None:
        return _PLACE.sub(lambda place: str(places[place[1]]), sentence)
    return _SPACED_PLACE.sub(lambda place: _fitted(place[1], str(places[place[2]]), place[3]), said)


def _fitted(before: str, filled: str, after: str) -> str:
    """Chinese stands apart from Latin, not from Chinese: no space at that end."""
    before = "" if _IDEOGRAPH.match(filled[:1]) else before
    return before + filled + ("" if _IDEOGRAPH.match(filled[-1:]) else after)


def said_by_script(text: str) -> list[str]:
    """The sentences that a script says: single-quoted, the first argument of its `say`."""
    return [sentence.replace("\\'", "'") for sentence in _IN_SCRIPT.findall(text)]


def in_every_language(sentence: Sentence) -> list[str]:
    """`sentence` as English and each translation have it, for a text that another process may have said."""
    others = (read(language) for language in SPOKEN if language != "en")
    return [sentence, *(known.get(sentence, sentence) for known in others)]


def joined(items: Iterable[str]) -> str:
    """ "a, b, c", of names and the like."""
    told = ""
    for item in items:
        told = say("{items}, {item}", items=told, item=item) if told else item
    return told


def clauses(parts: Iterable[str]) -> str:
    """ "a is here, b is there" """
    return say(", ").join(parts)


def translations() -> dict[str, str]:
    """By English sentence; none for English."""
    global _catalogue
    if _catalogue is None:
        language = in_use()
        _catalogue = {} if language == "en" else read(language)
    return _catalogue


def read(language: str) -> dict[str, str]:
    """A catalogue: lines of sentence, tab, translation; `#` heads those of a file of the code."""
    text = (_HERE / f"{language}.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if "\t" in line)
    return {sentence: said for sentence, said in rows if said}
