"""Every cause has its sentence and its habit, and every placeholder is one that is filled."""

from __future__ import annotations

import ast
import inspect
import re
import string
from types import ModuleType

import pytest

from ipydevice.diagnose.causes import by_message, held, passed
from ipydevice.diagnose.words import EXPLANATIONS, HABITS

FILLED = {"stray", "other", "device", "target", "origin", "where", "owner", "kind", "attribute"}
WITHOUT_HABIT = {"unknown"}


def causes_of(module: ModuleType) -> set[str]:
    """The strings that a module's rules return or choose from: words joined by underscores."""
    tree = ast.parse(inspect.getsource(module))
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    parts = [part for value in returned for part in ast.walk(value)]
    return {
        part.value
        for part in parts
        if isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and re.fullmatch(r"[a-z]+(_[a-z]+)+", part.value)
    } & (set(EXPLANATIONS) | {part.value for part in parts if isinstance(part, ast.Constant)})


@pytest.mark.parametrize("module", [by_message, held, passed])
def test_what_the_rules_answer_has_words(module: ModuleType) -> None:
    found = {
        cause for cause in causes_of(module) if cause not in ("set_default_device", "index_select", "is_available")
    }
    assert len(found) >= 5
    assert found - set(EXPLANATIONS) == set()
    assert found - set(HABITS) == set()


@pytest.mark.parametrize("cause", EXPLANATIONS)
def test_placeholders(cause: str) -> None:
    names = {name for _, name, _, _ in string.Formatter().parse(EXPLANATIONS[cause]) if name is not None}
    assert names <= FILLED
    assert "{" not in EXPLANATIONS[cause].format(**dict.fromkeys(FILLED, "x"))


@pytest.mark.parametrize("cause", EXPLANATIONS)
def test_house_style(cause: str) -> None:
    for text in (EXPLANATIONS[cause], HABITS.get(cause, "")):
        assert text == text.strip() and "  " not in text and "\n" not in text
        assert len(text) < 200
    assert not EXPLANATIONS[cause].endswith(".")


def test_habits_belong_to_causes() -> None:
    assert set(HABITS) <= set(EXPLANATIONS)
    assert set(EXPLANATIONS) - set(HABITS) == WITHOUT_HABIT
