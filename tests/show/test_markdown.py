"""The report to post: complete, harmless as Markdown, and nothing in it of the machine or the data."""

from __future__ import annotations

import dataclasses
import os
import random
import re
import sys
from pathlib import Path

import pytest
from test_fuzz import diagnosis
from views import HOSTILE, STANDARD, VIEWS, WORKSPACE

import ipydevice
from ipydevice import show
from ipydevice.diagnosis import Mark, Place, Row
from ipydevice.show.paths import without_folders

FENCE = re.compile(r"^(`{3,})text\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)


def fenced(text: str) -> list[str]:
    return [body for _, body in FENCE.findall(text)]


def prose(text: str) -> str:
    return FENCE.sub("", text)


def test_it_tells_what_a_helper_asks():
    text = show.markdown(STANDARD)
    assert text.startswith("### labels is on cpu, logits is on cuda:0\n")
    message, line, origin, table = fenced(text)
    assert message.replace("\n", " ") == STANDARD.message
    source, underline, devices, *_ = line.splitlines()
    assert source == STANDARD.failed.source
    assert underline.index("─") == source.index("logits") == devices.index("cuda:0")
    assert devices.index("cpu") == source.index("labels")
    assert origin == "for images, labels in loader:"
    assert re.search(r"labels +tensor +cpu +\[32\] +int64", table)
    assert "cross_entropy()" not in table  # names of library frames help nobody
    assert f"ipydevice {ipydevice.__version__}, Python {sys.version.split()[0]}" in text
    assert "**devices** " in text


def test_each_view_has_one():
    for name, view in VIEWS.items():
        assert show.markdown(view).startswith("### "), name
    assert "no .to() will move it" in show.markdown(WORKSPACE)


def test_no_name_becomes_markup():
    text = prose(show.markdown(HOSTILE))
    assert not re.search(r"(?<!\\)[<>@]", text)
    assert "\x1b" not in text
    text.encode()


@pytest.mark.parametrize("seed", range(80))
def test_nothing_breaks_out_of_its_fence(seed):
    text = show.markdown(diagnosis(random.Random(seed)))
    assert not re.search(r"(?<![\\`])<", re.sub(r"`[^`\n]*`", "", prose(text)))


def test_folders_of_the_machine_stay_there(tmp_path):
    secret = "/home/somebody/secret/data.pt"
    here = os.path.join(os.getcwd(), "train.py")
    source = f'y = torch.load("{secret}") + other'
    view = dataclasses.replace(
        STANDARD,
        message=f"cannot map {secret} to cuda:0",
        headline=f"x of {secret} is on cpu",
        failed=Place(file=here, line=3, source=source),
        marks=(Mark(source.index("other"), len(source), "cuda:0", "other"),),
        origin=Place(file=str(tmp_path / "model.py"), line=1, source="x = 1"),
        explanation=f"x comes from `{secret}`",
        notes=("C:\\Users\\somebody\\x.py", f"{Path(os.__file__)} is at fault"),
        placements=(Row(f'cache["{secret}"]', "tensor", "cpu", secret, note=f"view of {secret}"),),
    )
    text = show.markdown(view)
    assert "somebody" not in text
    assert "home" not in text
    assert str(tmp_path) not in text
    assert os.getcwd() not in text
    assert sys.prefix not in text
    assert "train.py, line 3" in text
    line = next(body for body in fenced(text) if "torch.load" in body)
    source, underline, *_ = line.splitlines()
    assert source == 'y = torch.load("…/data.pt") + other'
    assert underline.index("─") == source.index("other")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/me/data/x.pt", "…/x.pt"),
        ("open('/root/.ssh/id')", "open('…/id')"),
        ("file:///home/me/x", "…/x"),
        ("~/x/y", "…/y"),
        ("C:\\Users\\me\\x.py", "…/x.py"),
        ("'C:\\\\Users\\\\me\\\\x.py'", "'…/x.py'"),
        ("\\\\server\\share\\x.pt", "…/x.pt"),
        ("/usr/lib/python3/site-packages/torch/nn/modules/linear.py", "torch/nn/modules/linear.py"),
        ("https://pytorch.org/docs/stable", "https://pytorch.org/docs/stable"),
        ("a / b / c", "a / b / c"),
        ("a/b/c", "a/b/c"),
        ("model/layer.weight on cuda:0", "model/layer.weight on cuda:0"),
    ],
)
def test_paths(text, expected):
    assert without_folders(text) == expected


def test_the_projects_own_folder_is_left_out_even_with_spaces(tmp_path, monkeypatch):
    project = tmp_path / "my own project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert without_folders(f"{project / 'src' / 'x.py'}, line 3") == "src/x.py, line 3"
