"""The page about the toolbox runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "toolbox.md"


def test_every_block_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    names: dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8")
    for block in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        above = text[: block.start()].count("\n") + 1
        exec(compile("\n" * above + block[1], str(PAGE), "exec"), names)
    told = capsys.readouterr().out
    for said in ("cuda:0 (device(", "cuda:0 is card 0", "cuda:0 allocated +4.0 MiB", "mixed precision: nothing wrong",
                 "sync cuda:0 → cpu ×3", "1 rank, nothing wrong"):  # fmt: skip
        assert said in told, told


def test_every_public_name_is_on_it() -> None:
    import ipydevice

    tools = [
        name for name, home in ipydevice._HOMES.items() if home.startswith(("ipydevice.toolbox", "ipydevice.ranks"))
    ]
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in tools if name not in text] == ["DeviceMismatchError"]
