"""Each catalogue has every sentence of the code, and fills the same places."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from ipydevice import language

ROOT = Path(__file__).parents[2]
LANGUAGES = [name for name in language.SPOKEN if name != "en"]
PLACE = re.compile(r"\{(\w+)\}")
CHINESE = re.compile("[\u4e00-\u9fff]")


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("language_tool", ROOT / "tools" / "language.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


TOOL = _tool()
SAID = [sentence for sentences in TOOL.said().values() for sentence in sentences]


def test_the_code_says_something() -> None:
    assert len(SAID) > 600
    assert len(SAID) == len(set(SAID))
    for sentence in ("move {names} in the loop", "{where}, line {line}", "copy as report", "{count} layers"):
        assert sentence in SAID


@pytest.mark.parametrize("name", LANGUAGES)
def test_no_sentence_is_missing_and_none_is_stale(name: str) -> None:
    known = language.read(name)
    assert sorted(set(SAID) - set(known)) == []
    assert sorted(set(known) - set(SAID)) == []


@pytest.mark.parametrize("name", LANGUAGES)
def test_places_match(name: str) -> None:
    for sentence, said in language.read(name).items():
        assert sorted(set(PLACE.findall(said))) == sorted(set(PLACE.findall(sentence))), sentence


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_file_is_as_the_tool_writes_it(name: str) -> None:
    path = ROOT / "ipydevice" / "translations" / f"{name}.tsv"
    assert path.read_text(encoding="utf-8") == TOOL.text_of(name)


def test_every_chinese_sentence_is_chinese() -> None:
    """But for what is code, a name or a mark in any language."""
    kept = {sentence for sentence, said in language.read("zh").items() if not CHINESE.search(said)}
    words = {word for sentence in kept for word in re.findall(r"[a-z]{3,}", PLACE.sub("", sentence))}
    assert len(kept) < 30
    code = "torch cuda available device else cpu register buffer dtype dataclasses and enerator"
    assert words <= set(code.split()), kept


def test_calls_fill_the_places_of_their_sentences() -> None:
    """Where a sentence stands in its call; those in tables are said elsewhere."""
    for file in (ROOT / "ipydevice").rglob("*.py"):
        for sentence, filled in TOOL.of_python(file.read_text(encoding="utf-8")):
            if filled is not None:
                assert set(PLACE.findall(sentence)) <= filled or not filled, (file.name, sentence)


def test_it_finds_what_is_left_out() -> None:
    """The walk over the code sees a sentence however it is written."""
    text = (
        "say('a {x}', x=1)\nsay('b' if c else 'd')\nlanguage.say('e')\nF: Sentence = 'f'\n"
        "G: dict[str, Sentence] = {'key': 'g'}\nplural(2, 'h')\nSentence('i')\nsay(name)\n"
    )
    found = [sentence for sentence, _ in TOOL.of_python(text)]
    assert sorted(found) == ["a {x}", "b", "d", "e", "f", "g", "i", "{count} h", "{count} hs"]


def test_a_sentence_is_one_line() -> None:
    assert [sentence for sentence in SAID if "\t" in sentence or "\n" in sentence] == []
