"""`ipydevice run` and `ipydevice.install()`: the panel below the traceback, and nothing else changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import torch

def step(x):
    return x * torch.ones(3)

print(sys.argv[1:], __name__, sys.path[0])
step(torch.zeros(3, device="cuda:0"))
"""
INSTALLED = "import ipydevice\nipydevice.install()\nipydevice.virtual_gpus(1).enable()\n"


def run(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
    )  # fmt: skip


def test_panel_below_the_traceback(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    ended = run("-m", "ipydevice", "run", "--virtual", "1", "train.py", "--epochs", "3", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stdout == f"['--epochs', '3'] __main__ {tmp_path}\n"
    traceback, _, panel = ended.stderr.partition("✗")
    assert traceback.startswith('Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n')
    assert traceback.rstrip().splitlines()[-1].startswith("RuntimeError: Expected all tensors")
    assert "torch.ones(3) is on cpu, x is on cuda:0" in panel
    assert "%devicefix" not in panel


@pytest.mark.parametrize(("code", "said", "returned"), [
    ("import sys; sys.exit(5)", "", 5), ("raise SystemExit('no data')", "no data\n", 1), ("print('fine')", "", 0),
    ("1 / 0", "ZeroDivisionError", 1),
])  # fmt: skip
def test_exit_codes_are_passed_on(code: str, said: str, returned: int, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    ended = run("-m", "ipydevice", "run", "a.py", cwd=tmp_path)
    assert ended.returncode == returned
    assert said in ended.stderr
    assert "✗" not in ended.stderr


@pytest.mark.parametrize("code", [
    "def f():\n    raise KeyboardInterrupt\nf()", "x = (", "import broken", "raise KeyboardInterrupt('now')",
    "import atexit\natexit.register(print, 'bye')\nraise KeyboardInterrupt",
    "import sys\nsys.excepthook = lambda *exc: print('mine', exc[0])\n1 / 0",
    "import sys\nsys.excepthook = None\n1 / 0",
])  # fmt: skip
def test_ends_as_python_does(code: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    (tmp_path / "broken.py").write_text("def f(:")
    bare, ended = run("a.py", cwd=tmp_path), run("-m", "ipydevice", "run", "a.py", cwd=tmp_path)
    # `python a.py` makes the path of its file absolute
    shown = bare.stderr.replace(f'"{tmp_path}/a.py"', '"a.py"')
    if "= None" in code:  # what the interpreter says of the hook differs by version
        assert "ZeroDivisionError" in ended.stderr
    else:
        assert ended.stderr == shown
    assert (ended.returncode, ended.stdout) == (bare.returncode, bare.stdout)


def test_an_interrupt_from_outside(tmp_path: Path) -> None:
    code = "import time\nprint('ready', flush=True)\ntime.sleep(60)"
    (tmp_path / "a.py").write_text(code)
    with subprocess.Popen(
        [sys.executable, "-m", "ipydevice", "run", "a.py"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it in the background
    ) as program:  # fmt: skip
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=60)
    assert program.returncode == -signal.SIGINT
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert "ipydevice" not in said


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    ended = run("-m", "ipydevice", "run", "-m", "nothing_like_that", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "ipydevice run: No module named nothing_like_that\n")


def test_a_module_that_does_not_parse(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = (")
    ended = run("-m", "ipydevice", "run", "-m", "a", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[0] == f'  File "{tmp_path}/a.py", line 1'


def test_the_panel_comes_once_below_a_hook_of_the_program(tmp_path: Path) -> None:
    for chained in (True, False):
        hook = f"old = sys.excepthook\ndef mine(*exc):\n    print('mine')\n    {chained} and old(*exc)\n"
        (tmp_path / "a.py").write_text(f"import sys\n{hook}sys.excepthook = mine\n{PROGRAM}")
        ended = run("-m", "ipydevice", "run", "--virtual", "1", "a.py", cwd=tmp_path)
        assert ended.stdout.endswith("mine\n")
        assert ended.stderr.count("✗") == 1


def test_each_fix_shows_its_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    said = run("-m", "ipydevice", "run", "--virtual", "1", "train.py", cwd=tmp_path).stderr.splitlines()
    heads = [at for at, line in enumerate(said) if line[:12].strip().removeprefix("fix").strip().isdigit()]
    assert len(heads) >= 2
    for at in heads:
        assert said[at + 1].strip().startswith(("- ", "+ "))


def test_module(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "train.py").write_text("import sys\nprint(sys.argv[1:], __package__)")
    ended = run("-m", "ipydevice", "run", "-m", "pack.train", "a", cwd=tmp_path)
    assert ended.stdout == "['a'] pack\n"


def test_installed_by_the_program(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(INSTALLED + PROGRAM)
    ended = run("a.py", cwd=tmp_path)
    assert ended.stderr.count("Traceback") == 1
    assert "✗ torch.ones(3) is on cpu, x is on cuda:0" in ended.stderr


def test_threads(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=step, args=[torch.zeros(3, device='cuda:0')]).start()\n"
    (tmp_path / "a.py").write_text(INSTALLED + PROGRAM[: PROGRAM.index("print(")] + thread)
    ended = run("a.py", cwd=tmp_path)
    assert "Exception in thread" in ended.stderr
    assert "✗ torch.ones(3) is on cpu, x is on cuda:0" in ended.stderr
    assert "ipydevice/virtual" not in ended.stderr


def test_one_panel_for_all_ranks(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(INSTALLED + PROGRAM)
    launcher = (
        "import os, subprocess, sys\n"
        "ranks = [subprocess.Popen([sys.executable, 'a.py'], env={**os.environ, 'RANK': str(r)}) for r in range(2)]\n"
        "sys.exit(sum(rank.wait() for rank in ranks))"
    )
    old = tmp_path / f"ipydevice-{'0' * 20}"
    old.touch()
    os.utime(old, (0, 0))  # of a launch long ago
    ended = run("-c", launcher, cwd=tmp_path, TMPDIR=str(tmp_path))
    lines = [line for line in ended.stderr.splitlines() if line.startswith("[rank")]
    assert len([line for line in lines if "✗" in line]) == 1
    assert len([line for line in lines if "another rank of this machine shows it" in line]) == 1
    assert not old.exists()
    assert len(list(tmp_path.glob("ipydevice-*"))) == 1


GROUP = """
import sys
import torch
import torch.distributed as dist
{before}
dist.init_process_group("gloo")
{after}
rank = dist.get_rank()

def same(x):
    return x * torch.ones(3)

def other(x):
    return torch.cat([x, torch.zeros(3)])

dist.barrier()
(same if rank < 2 or "same" in sys.argv else other)(torch.zeros(3, device="cuda:0"))
"""


@pytest.mark.parametrize("launch", [
    "installed before the group",
    pytest.param("installed after the group", marks=pytest.mark.slow),
    pytest.param("ipydevice run", marks=pytest.mark.slow),
])  # fmt: skip
def test_torchrun(launch: str, tmp_path: Path) -> None:
    """Three real processes of a gloo group; two of them fail at the same place."""
    before = INSTALLED if launch == "installed before the group" else ""
    after = INSTALLED if launch == "installed after the group" else ""
    (tmp_path / "a.py").write_text(GROUP.format(before=before, after=after))
    program = ["-m", "ipydevice", "run", "--virtual-gpus", "1", "a.py"] if launch == "ipydevice run" else ["a.py"]
    ended = run(
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", *program,
        cwd=tmp_path, TMPDIR=str(tmp_path), OMP_NUM_THREADS="1",
    )  # fmt: skip
    assert ended.returncode == 1
    lines = ended.stderr.splitlines()
    panels = sorted(line for line in lines if "✗" in line)
    assert [line.partition(" on ")[0].partition("✗")[2] for line in panels] == [
        " torch.ones(3) is",
        " torch.zeros(3) is",
    ]
    assert panels[0][:9] in ("[rank0]: ", "[rank1]: ")
    assert panels[1].startswith("[rank2]: ✗")
    (short,) = [line for line in lines if "another rank of this machine shows it" in line]
    assert short.startswith("[rank")
    said = [line for line in lines if line.startswith("[rank")]
    assert not any(line.count("[rank") > 1 for line in said)  # torch's own hook sets the rank too
    assert list(tmp_path.glob("ipydevice-*")) == []  # in torchrun's own folder


def test_a_program_that_ends_well_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import ipydevice, sys\nipydevice.install()\nprint('torch' in sys.modules, 'IPython' in sys.modules)"
    )
    assert run("a.py", cwd=tmp_path).stdout == "False False\n"


def test_other_hooks_are_kept(tmp_path: Path) -> None:
    code = """
import sys, ipydevice
from ipydevice import excepthooks
def mine(*exc): print("mine", file=sys.stderr)
sys.excepthook = mine
ipydevice.install(); ipydevice.install()
if "back" in sys.argv:
    excepthooks.uninstall()
    assert sys.excepthook is mine
1 / 0
"""
    (tmp_path / "a.py").write_text(code)
    for arguments in ([], ["back"]):
        assert run("a.py", *arguments, cwd=tmp_path).stderr == "mine\n"
