"""`%config DeviceTools` in a real shell: documented, refused when wrong, obeyed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from shells import Kernel, Shell
from traitlets import TraitError
from traitlets.config import Config

from ipydevice import settings

SETUP = """
import torch, ipydevice
gpus = ipydevice.virtual_gpus(1).enable()
first = torch.zeros(4, device="cuda:0")
second = torch.zeros(4)
"""
FAIL = "first + second"
TITLE = "✗ second is on cpu, first is on cuda:0"


@pytest.fixture
def loaded(shell: Shell) -> Iterator[Shell]:
    shell.run("%load_ext ipydevice")
    assert shell.run(SETUP).error is None
    yield shell
    shell.run("gpus.disable()")


def panel(shell: Shell, cell: str = FAIL) -> list[str]:
    """The lines of the panel under a failing cell."""
    text = shell.run(cell).text
    return text[text.index("✗") :].rstrip().splitlines() if "✗" in text else []


def test_each_wish_is_documented(loaded: Shell) -> None:
    text = loaded.run("%config DeviceTools").text
    for name, trait in settings.DeviceTools.class_traits(config=True).items():
        assert f"DeviceTools.{name}=" in text
        assert trait.help.split()[0] in text


@pytest.mark.parametrize(("name", "value"), [("verbosity", "loud"), ("rows", 0), ("rows", "ten"), ("colours", "blue")])
def test_what_is_not_known_is_refused(loaded: Shell, name: str, value: Any) -> None:
    wishes = settings.of(loaded.ip)
    before = getattr(wishes, name)
    with pytest.raises(TraitError):
        setattr(wishes, name, value)
    loaded.run(f"%config DeviceTools.{name} = {value!r}")
    assert getattr(wishes, name) == before


def test_short_is_one_line_and_devicefix_is_all_of_it(loaded: Shell) -> None:
    loaded.run("%config DeviceTools.verbosity = 'short'")
    (line,) = panel(loaded)
    assert line.startswith(TITLE)
    assert "In [4]" in line
    assert line.endswith("%devicefix")
    assert len(panel(loaded, "%devicefix")) > 5


def test_full_shows_reasons_table_and_all_of_each_fix(loaded: Shell) -> None:
    loaded.run("%config DeviceTools.verbosity = 'full'")
    text = "\n".join(panel(loaded))
    for said in ("  fact ", "  error ", "tensor  cuda:0  [4]", "- first + second", "+ first + second.to(first.device)"):
        assert said in text


def test_without_display_the_note_stays_and_devicefix_shows(loaded: Shell) -> None:
    loaded.run("%config DeviceTools.auto_display = False")
    text = loaded.run(FAIL).text
    assert "✗" not in text
    assert "second is on cpu, first is on cuda:0" in text
    assert TITLE in loaded.run("%devicefix").text


def test_rows_of_a_table(loaded: Shell) -> None:
    loaded.run("third = torch.zeros(1)")
    assert "more" not in loaded.run("%devices").text
    loaded.run("%config DeviceTools.rows = 2")
    assert "and 1 more" in loaded.run("%devices").text


def test_colours_wherever_the_text_goes(loaded: Shell) -> None:
    loaded.run("%config DeviceTools.colours = 'always'")
    assert "\x1b[1;31m✗ second" in loaded.run(FAIL).text
    loaded.run("%config DeviceTools.colours = 'never'")
    assert "\x1b" not in loaded.run("%devicefix").text


def test_from_the_configuration_file() -> None:
    InteractiveShell.clear_instance()
    config = Config({"DeviceTools": {"verbosity": "full", "rows": 7}, "HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=config)
    try:
        settings.register(shell)
        assert (settings.of(shell).verbosity, settings.of(shell).rows) == ("full", 7)
    finally:
        InteractiveShell.clear_instance()


def test_loaded_once_and_taken_away(shell: Shell) -> None:
    shell.run("%load_ext ipydevice")
    shell.run("%reload_ext ipydevice")
    assert sum(type(one) is settings.DeviceTools for one in shell.ip.configurables) == 1
    shell.run("%unload_ext ipydevice")
    assert not any(type(one) is settings.DeviceTools for one in shell.ip.configurables)
    assert settings.of(shell.ip).verbosity == "normal"


class TestTheSameErrorAgain:
    """The second panel in a row that says the same folds to one line."""

    def test_folds(self, loaded: Shell) -> None:
        assert len(panel(loaded)) > 5
        (line,) = panel(loaded)
        assert line.startswith(f"{TITLE} · as before")
        assert line.endswith("   %devicefix")
        assert len(panel(loaded)) == 1

    def test_the_whole_is_a_command_away(self, loaded: Shell) -> None:
        panel(loaded)
        panel(loaded)
        assert len(panel(loaded, "%devicefix")) > 5
        assert loaded.run("%devicefix 1").error is None

    @pytest.mark.parametrize(
        "between",
        ["1 / 0", "first @ first.to('cpu')", "second = torch.zeros(4, dtype=torch.float64)\nfirst + second"],
        ids=["another kind", "another device error", "other code"],
    )
    def test_not_after_another_error(self, loaded: Shell, between: str) -> None:
        panel(loaded)
        loaded.run(between)
        assert len(panel(loaded)) > 5

    def test_not_where_the_cell_has_changed(self, loaded: Shell) -> None:
        panel(loaded)
        assert len(panel(loaded, f"# moved\n{FAIL}")) > 5

    def test_a_good_cell_between_makes_it_no_other_error(self, loaded: Shell) -> None:
        panel(loaded)
        loaded.run("x = 1")
        assert len(panel(loaded)) == 1


def test_in_a_notebook_the_line_opens(kernel: Kernel) -> None:
    kernel.run("%load_ext ipydevice")
    kernel.run(SETUP)
    whole = kernel.run(FAIL).shown("text/html")[0]
    again = kernel.run(FAIL)
    (html,) = again.shown("text/html")
    assert '<details class="ipd-fold">' not in whole
    assert '<details class="ipd-fold"><summary>' in html
    assert html.count("second is on cpu, first is on cuda:0</strong>") == 1
    assert "fix" in html
    assert again.shown("text/plain")[0].count("\n") == 0
    assert again.shown("application/vnd.ipydevice.v1+json")[0]["fixes"]
