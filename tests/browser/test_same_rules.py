"""The page applies a fix by the rules of `ipydevice.fixes.apply`: the same examples for both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipydevice import fixes
from ipydevice.show import as_html

EXAMPLES = json.loads(Path(__file__).with_name("apply_examples.json").read_text())
APPLY = """
([cells, fix]) => {
  const steps = plan(cells, fix, -1);
  if (steps.why) return null;
  const after = cells.map((cell) => cell.source);
  for (const { index, text } of steps.replace) after[index] = text;
  const runs = steps.rerun.map((run) => after[run.index]);
  if (steps.setup) {
    after.splice(steps.setup.below + 1, 0, steps.setup.text);
    runs.unshift(steps.setup.text);
  }
  return [after, runs];
}
"""


def cell(number, cell_id, source):
    return {"cell": number, "cell_id": cell_id, "source": source}


@pytest.fixture(params=EXAMPLES, ids=lambda example: example["name"])
def example(request):
    given = request.param
    return {
        "cells": [cell(*each) for each in given["cells"]],
        "fix": {
            "edits": [dict(zip(("cell", "cell_id", "before", "after"), each, strict=True)) for each in given["edits"]],
            "setup": given.get("setup"),
            "rerun": [cell(*each) for each in given["rerun"]],
        },
        "expected": None if given.get("refused") else [given["after"], given["runs"]],
    }


@pytest.fixture(scope="module")
def script_page(browser):
    page = browser.new_page()
    page.add_script_tag(content=as_html.asset("notebook.js"))
    yield page
    page.close()


def test_in_the_page(example, script_page):
    result = script_page.evaluate(APPLY, [example["cells"], example["fix"]])
    assert result == example["expected"]


def test_in_python(example):
    if example["expected"] is None:
        with pytest.raises(ValueError, match="not applied"):
            fixes.apply(example["cells"], example["fix"])
    else:
        cells, runs = fixes.apply(example["cells"], example["fix"])
        assert [[c["source"] for c in cells], [c["source"] for c in runs]] == example["expected"]
