"""A file is loaded to a card that is not there, by a setting that a later move uses too: the setting is mended."""

from __future__ import annotations

from pathlib import Path

import pytest
import shells
import torch
from mended import IMPORTS, Notebook, applied, run

import ipydevice

SAVED = (
    IMPORTS + "import io\nkept = io.BytesIO()\ntorch.save(nn.Linear(2, 2).state_dict(), kept)\n"
    "def restored(where):\n    kept.seek(0)\n    net = nn.Linear(2, 2)\n"
    "    net.load_state_dict(torch.load(kept, map_location=where))\n    return net.to(where)"
)
NOTEBOOKS = [
    Notebook(
        "a_field_of_a_configuration",
        (
            SAVED,
            "from dataclasses import dataclass\n@dataclass\nclass Config:\n    device: str = 'cuda:7'",
            "cfg = Config()\nnet = restored(cfg.device)\nout = net(torch.ones(1, 2, device=cfg.device))",
        ),
        "    device: str = 'cuda'",
    ),
    Notebook(
        "a_number_put_into_a_name",
        (
            SAVED,
            "rank = 5\nwhere = f'cuda:{rank}'",
            "net = restored(where)\nout = net(torch.ones(1, 2, device=where))",
        ),
        "where = f'cuda:{rank % torch.cuda.device_count()}' if torch.cuda.is_available() else 'cpu'",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_setting_is_mended(case: Notebook) -> None:
    cells = list(case.cells)
    with ipydevice.virtual_gpus(2), shells.shell() as shell:
        shell.run("%load_ext ipydevice")
        assert run(shell, cells, "cuda:0")
        found = ipydevice.explain()
        assert found is not None
        fix = found.fixes[0]
        assert case.adds in [line for edit in fix.edits for line in edit.after.splitlines()]
        assert not applied(shell, cells, fix)


def test_no_card_at_all(tmp_path: Path) -> None:
    with ipydevice.virtual_gpus(1):
        torch.save({"w": torch.ones(2, device="cuda:0")}, tmp_path / "a.pt")
    cells = [
        f"import torch\nSETTINGS = {{'path': {str(tmp_path / 'a.pt')!r}, 'device': 'cuda'}}",
        "w = torch.load(SETTINGS['path'], map_location=SETTINGS['device'])['w']\n"
        "out = w * torch.ones(2, device=SETTINGS['device'])",
    ]
    with shells.shell() as shell:
        shell.run("%load_ext ipydevice")
        assert run(shell, cells, "cpu")
        found = ipydevice.explain()
        assert found is not None
        assert found.cause == "no_accelerator"
        assert "is_available" in found.fixes[0].edits[0].after
        assert not applied(shell, cells, found.fixes[0])
