"""What the README says is what the project has."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from ipydevice.cli import COMMANDS, quick_table
from ipydevice.diagnose.words import EXPLANATIONS, HABITS
from ipydevice.messages import catalogue, entries

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def readme() -> object:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import readme
    finally:
        sys.path.pop(0)
    return readme


def test_the_parts_made_of_the_catalogue_are_up_to_date(readme: object) -> None:
    assert readme.filled(TEXT) == TEXT, "python tools/readme.py writes them"


def test_missing_marks_are_told(readme: object) -> None:
    with pytest.raises(ValueError, match="no marks <!-- quick table: "):
        readme.filled("# nothing")


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md"])
def test_links_and_pictures_are_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)|(?:src|srcset)=\"([^\"]+)", text):
        target = "".join(target)
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_both_languages_have_the_same_commands_up_front() -> None:
    """A command that is new in one has to be told in the other."""
    chinese = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
    commands = re.compile(r"^\| (`[^`]+`) \|", re.MULTILINE)
    up_front = TEXT.partition("<details>")[0]
    assert set(commands.findall(up_front)) <= set(commands.findall(chinese))
    assert re.findall(r"\]\((notebooks/[^)]+)\)", up_front) == re.findall(r"\]\((notebooks/[^)]+)\)", chinese)


def test_the_moving_picture_is_small_and_moves() -> None:
    """`python tests/browser/take_moving_picture.py` takes it from a real session."""
    data = (ROOT / "notebooks" / "panel.gif").read_bytes()
    assert data.startswith(b"GIF89a")
    assert len(data) < 1_000_000
    assert data.count(b"\x21\xf9\x04") > 5  # graphic control extensions: one for each frame


def test_commands_and_magics_exist(shell: object) -> None:
    text = TEXT + (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
    for command in re.findall(r"`ipydevice (\w+)", text):
        assert command in COMMANDS, command
    ip = shell.ip
    assert isinstance(ip, InteractiveShell)
    shell.run("%load_ext ipydevice")
    found = {name for kind in ("line", "cell") for name in ip.magics_manager.magics[kind]}
    for magic in re.findall(r"`%{1,2}(\w+)", text):
        assert magic in found, magic


class TestTheQuickTable:
    def test_every_family_of_pytorch_has_its_usual_cause(self) -> None:
        of_pytorch = {entry.family for entry in catalogue() if not entry.family.startswith("lib:")}
        assert set(entries.usual()) == of_pytorch

    @pytest.mark.parametrize("behind", entries.usual().values(), ids=lambda behind: behind.family)
    def test_causes_and_remedies_are_known(self, behind: entries.Usual) -> None:
        assert behind.cause in EXPLANATIONS
        assert behind.cause in HABITS
        assert behind.usual

    def test_a_row_stands_for_its_own_family(self) -> None:
        families = {entry.id: entry.family for entry in catalogue()}
        for behind in entries.usual().values():
            assert not behind.quick or families[behind.quick] == behind.family

    def test_no_marks_of_templates_are_left(self) -> None:
        table = quick_table.as_markdown()
        assert not re.search(r"[{}\[\]^$]|<<|>>", table.replace("device_ids[0]", ""))
        assert all(row.count("|") == 4 for row in table.splitlines())
        assert len(table.splitlines()) > 10
