"""Wheel and sdist as an index gets them, and the wheel in an environment where nothing else of ours is."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000

pytestmark = pytest.mark.slow


def run(*command: str | Path, **env: str) -> str:
    """What it prints, run away from this project's own folder, which Python would put on its path."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=clean | env, cwd="/", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, capture_output=True, check=True
    )
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_an_index_takes_them(built: Path) -> None:
    pytest.importorskip("twine")
    run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())


def test_what_is_in_them(built: Path, wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "ipydevice/py.typed",
        "ipydevice/messages/catalogue.tsv",
        "ipydevice/messages/usual.tsv",
        "ipydevice/show/static/panel.js",
        "ipydevice/translations/zh.tsv",
    ):
        assert needed in names
    assert any(name.endswith("share/jupyter/labextensions/ipydevice/package.json") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "notebooks", "tools"))]
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "tests/test_package.py", "notebooks/quickstart.ipynb", "tools/demo.py"} <= packed


def test_sizes(wheel: Path) -> None:
    """People install it into a kernel that waits."""
    assert wheel.stat().st_size < MEGABYTE
    assert sum(entry.file_size for entry in zipfile.ZipFile(wheel).infolist()) < 2.5 * MEGABYTE


def test_metadata(wheel: Path) -> None:
    (name,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("METADATA"))
    text = zipfile.ZipFile(wheel).read(name).decode()
    assert "License-Expression: BSD-3-Clause" in text
    assert "Classifier: Typing :: Typed" in text
    assert "Requires-Python: >=3.11" in text


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the wheel in it; PyTorch and IPython are lent by this one."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # Behind its own packages, and without the .pth files of an editable install.
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_extension_loads_and_explains(fresh: Path, tmp_path: Path) -> None:
    program = tmp_path / "session.ipy"
    program.write_text(
        "%load_ext ipydevice\n"
        "import torch, ipydevice\n"
        "print('from', ipydevice.__file__)\n"
        "%devices --virtual 1\n"
        "x = torch.ones(2, device='cuda')\n"
        "try:\n    x + torch.ones(2)\nexcept RuntimeError as error:\n"
        "    print(ipydevice.explain(error).headline)\n"
    )
    out = run(fresh, "-m", "IPython", "--no-banner", program, IPYTHONDIR=str(tmp_path / "ipython"))
    assert f"from {fresh.parents[1]}" in out
    assert "torch.ones(2) is on cpu, x is on cuda:0" in out


def test_the_command_and_the_page_s_part_are_installed(fresh: Path) -> None:
    assert run(fresh.parent / "ipydevice", "--version").startswith("ipydevice ")
    assert (fresh.parents[1] / "share/jupyter/labextensions/ipydevice/package.json").exists()


def test_nothing_that_is_here_would_change(wheel: Path) -> None:
    """As in `test_install`, from the wheel and without an index: all it needs is here, in whatever version."""
    here = {str(found.metadata["Name"]).lower() for found in importlib.metadata.distributions()}
    if not {"torch", "ipython", "ipywidgets", "anywidget", "wcwidth", "nbformat"} <= here:
        pytest.skip("a requirement is missing here")
    asked = ["--dry-run", "--quiet", "--no-index", "--report", "-", str(wheel)]
    report = json.loads(run(sys.executable, "-m", "pip", "install", *asked, "--ignore-requires-python"))
    assert [item["metadata"]["name"] for item in report["install"]] in (["ipydevice"], [])


NEWER = [f"python3.{minor}" for minor in range(12, 20)]


@pytest.mark.parametrize("name", NEWER)
def test_newer_interpreters_read_every_file(name: str, tmp_path: Path) -> None:
    """Without PyTorch, which is large: all files compile without a warning, and the linter runs."""
    versions = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    places = [str(place.parent) for place in Path(versions, "versions").glob(f"{name[6:]}.*/bin/python")]
    python = shutil.which(name, path=os.pathsep.join([*places, os.environ["PATH"]]))
    if python is None or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"no {name} here")
    program = tmp_path / "program.py"
    program.write_text(
        "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.parts = [nn.Linear(1, 1)]\n"
    )
    read = (
        "import pathlib, sys, ipydevice.cli\n"
        f"for path in pathlib.Path({str(ROOT / 'ipydevice')!r}).rglob('*.py'):\n"
        "    compile(path.read_text(encoding='utf-8'), str(path), 'exec')\n"
        f"sys.exit(ipydevice.cli.main(['lint', {str(program)!r}]) != 1)\n"
    )
    out = run(python, "-W", "error", "-c", read, PYTHONPATH=str(ROOT), PYTHONDONTWRITEBYTECODE="1")
    assert "program.py:7:9: IPD006 " in out
