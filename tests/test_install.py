"""Installing after a cell has failed must not replace what the kernel has loaded."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_installing_changes_no_version_that_is_there() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(run.stdout[run.stdout.index("{") :])
    wanted = {item["metadata"]["name"].lower(): item["metadata"]["version"] for item in report["install"]}
    assert "ipydevice" in wanted
    here = {str(found.metadata["Name"]).lower(): found.version for found in importlib.metadata.distributions()}
    assert {name for name, version in wanted.items() if here.get(name, version) != version} == set()


def test_requirements_have_no_upper_bounds() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    (block,) = re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    requirements = re.findall(r'"([^"]+)"', block)
    assert requirements
    for requirement in requirements:
        assert not re.search(r"<|==|~=|!=", requirement), requirement
