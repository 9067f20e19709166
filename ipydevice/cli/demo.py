"""Run short notebooks that fail as real ones do: the error, its panel, the fix, and the cell again, which runs.

The shell is a real one of IPython's, without your profile, and nothing is written. On a machine without an accelerator
it takes a virtual one, with real arithmetic on the CPU.

Examples:
  ipydevice demo
  ipydevice demo buffer
  ipydevice demo --list
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from ipydevice.input_error import InputError
from ipydevice.requirements import torch_trouble

WIDTH = 100  # columns of the rule between two stories


@dataclass(frozen=True, slots=True)
class Story:
    """A notebook of two cells, of which the second fails."""

    name: str
    about: str
    cells: tuple[str, str]


STORIES = (
    Story(
        "labels",
        "a training loop that moves the pictures and forgets the labels",
        (
            """\
torch.manual_seed(0)
pictures, labels = torch.randn(64, 20), torch.randint(5, (64,))
loader = DataLoader(TensorDataset(pictures, labels), batch_size=32)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)""",
            """\
for x, y in loader:
    logits = model(x.to(device))
    loss = F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"loss {loss.item():.2f}")""",
        ),
    ),
    Story(
        "buffer",
        "a module with a tensor that .to(device) does not see",
        (
            """\
class Normalise(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(3, 1, 1)

    def forward(self, x):
        return x - self.mean

net = nn.Sequential(Normalise(), nn.Conv2d(3, 8, 3)).to(device)""",
            """\
image = torch.ones(1, 3, 8, 8, device=device)
print(tuple(net(image).shape))""",
        ),
    ),
    Story(
        "fresh",
        "a tensor made in the middle of a computation",
        (
            """\
def positions(x):
    steps = torch.arange(x.shape[1])
    return x + steps""",
            """\
tokens = torch.zeros(2, 6, device=device)
print(positions(tokens).sum().item())""",
        ),
    ),
)
BEGIN = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("story", nargs="?", metavar="STORY", help="one of those that --list shows; default: all")
    parser.add_argument("--list", action="store_true", help="the stories: name, what fails")


def run(given: argparse.Namespace) -> int:
    """0 when each cell that failed runs in the end."""
    if given.list:
        for story in STORIES:
            print(f"{story.name:<8}{story.about}")
        return 0
    chosen = [story for story in STORIES if given.story in (None, story.name)]
    if not chosen:
        raise InputError(f"there is no story {given.story}; `ipydevice demo --list` shows them")
    trouble = torch_trouble()
    if trouble is not None:
        raise InputError(trouble)
    with tempfile.TemporaryDirectory() as folder:
        shell = _shell(folder)
        mended = [_tell(shell, story) for story in chosen]
    print("In a notebook: %load_ext ipydevice, before the error or after it.")
    return int(not all(mended))


def _shell(folder: str) -> Any:
    """A shell of IPython's terminal that reads nothing of the person's profile and leaves nothing there."""
    from IPython.core.profiledir import ProfileDir
    from IPython.terminal.interactiveshell import TerminalInteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.TerminalInteractiveShell.simple_prompt = True
    if not sys.stdout.isatty():
        config.TerminalInteractiveShell.colors = "NoColor"
    shell = TerminalInteractiveShell.instance(
        config=config, ipython_dir=folder, profile_dir=ProfileDir.create_profile_dir(folder), user_ns=_names()
    )
    shell.run_cell(BEGIN)
    shell.run_line_magic("load_ext", "ipydevice")
    return shell


def _names() -> dict[str, Any]:
    import torch

    found = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    if found is not None:
        return {"device": torch.device(found.type, 0)}
    if torch.cuda.is_available():
        return {"device": torch.device("cuda:0")}
    from ipydevice.virtual import virtual_gpus

    virtual_gpus(1).enable()
    print("No accelerator here: a virtual GPU takes its place.")
    return {"device": torch.device("cuda:0")}


def _tell(shell: Any, story: Story) -> bool:
    print(f"\n── {story.name}: {story.about} ".ljust(WIDTH, "─"))
    for source in story.cells:
        failing = shell.execution_count
        _run(shell, source)
    if not _run(shell, "%devicefix 1") or not shell.rl_next_input:
        return False
    fixed, shell.rl_next_input = shell.rl_next_input, None
    mended = _run(shell, fixed)
    return mended if fixed.startswith(f"# replaces In [{failing}]") else _run(shell, story.cells[1])


def _run(shell: Any, source: str) -> bool:
    """Show a cell as the terminal shows it, and run it."""
    number = shell.execution_count
    lead = " " * (len(f"In [{number}]: ") - 5) + "...: "
    print(f"\nIn [{number}]: " + f"\n{lead}".join(source.splitlines()), flush=True)
    return bool(shell.run_cell(source, store_history=True).success)
