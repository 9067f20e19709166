"""Run the tutorials in real Jupyter kernels, and store what they show.

    python tools/notebooks.py                         all of them, stored where they are
    python tools/notebooks.py 03_data_parallel        one of them
    python tools/notebooks.py --output build          executed copies, the notebooks stay as they are

A cell tagged ``raises-exception`` has to raise and to get a panel.  A cell tagged ``offered`` holds what the
``%devicefix`` before it puts into the next cell; storing writes it anew.

Stored panels are text alone: code hosts show HTML without its style sheet, and a saved widget whose kernel
is gone is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[1] / "notebooks"
MIME_TYPE = "application/vnd.ipydevice.v1+json"
SECONDS_PER_CELL = 300
AT_ONCE = 2  # kernels; each imports PyTorch, and computes on a thread or two


class TutorialClient(NotebookClient):  # type: ignore[misc]  # nbclient's own types need traitlets' plugin
    """Knows what each `%devicefix` has put into the next cell."""

    def __init__(self, notebook: NotebookNode, *, store: bool, **options: Any) -> None:
        super().__init__(notebook, **options)
        self.store = store
        self.offered = ""
        self.wrong: list[str] = []

    async def async_execute_cell(self, cell: NotebookNode, cell_index: int, **kwargs: Any) -> NotebookNode:
        if "offered" in _tags(cell) and cell.source != self.offered:
            if self.store:
                cell.source = self.offered
            else:
                self.wrong.append(f"{cell.id} is not what %devicefix offers:\n{self.offered}")
        done: NotebookNode = await super().async_execute_cell(cell, cell_index, **kwargs)
        if cell.cell_type == "code":
            self.offered = _next_input(self.reply) or self.offered
            if "raises-exception" in _tags(cell):
                self._look_at_failure(cell)
        return done

    async def async_execute(self, *args: Any, **kwargs: Any) -> NotebookNode:
        self.on_cell_executed = self._keep_reply
        done: NotebookNode = await super().async_execute(*args, **kwargs)
        return done

    def _keep_reply(self, cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
        self.reply = execute_reply

    def _look_at_failure(self, cell: NotebookNode) -> None:
        if not any(output.output_type == "error" for output in cell.outputs):
            self.wrong.append(f"{cell.id} should raise, and runs")
        elif not any(MIME_TYPE in output.get("data", {}) for output in cell.outputs):
            self.wrong.append(f"{cell.id} raises and gets no panel")


def _tags(cell: NotebookNode) -> list[str]:
    tags: list[str] = cell.metadata.get("tags", [])
    return tags


def _next_input(reply: dict[str, Any]) -> str:
    pieces = [piece["text"] for piece in reply["content"].get("payload", []) if piece["source"] == "set_next_input"]
    return pieces[-1] if pieces else ""


async def execute(path: Path, *, store: bool) -> tuple[NotebookNode, list[str]]:
    """The notebook with its outputs, as far as it ran, and what is wrong with it."""
    notebook = nbformat.read(path, as_version=4)
    client = TutorialClient(
        notebook,
        store=store,
        kernel_name="python3",
        timeout=SECONDS_PER_CELL,
        store_widget_state=False,
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],  # ipykernel 7.4 warns of every kernel on TCP
    )
    try:
        await client.async_execute()
    except CellExecutionError as error:
        client.wrong.append(f"a cell fails that should not:\n{error}")
    return _readable(notebook), client.wrong


def _readable(notebook: NotebookNode) -> NotebookNode:
    """Without widgets and pages, and without the folders of this machine."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        kept = []
        for output in cell.outputs:
            data = output.get("data")
            if data is not None:
                if "application/vnd.jupyter.widget-view+json" in data:
                    continue
                if MIME_TYPE in data:
                    output.data = {"text/plain": data["text/plain"]}
            if output.get("name") == "stderr":
                output.text = "".join(line for line in output.text.splitlines(True) if not line.startswith(_CHATTER))
                if not output.text:
                    continue
            kept.append(output)
        cell.outputs = kept
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    text = json.dumps(notebook)
    for folder, name in _folders():
        text = text.replace(folder, name)
    text = re.sub(r"/\S*?/ipykernel_\d+/", "ipykernel/", text)  # where ipykernel pretends that cells are
    return nbformat.from_dict(json.loads(text))


# torch.profiler's own lines on the file descriptor, which carry times and process numbers.
_CHATTER = ("USDT:", "STAGE:")


def _folders() -> list[tuple[str, str]]:
    """Folders as tracebacks write them, and what to write instead."""
    import torch

    packages = str(Path(torch.__file__).parents[1])
    home = os.path.expanduser("~")
    found = [(packages, "site-packages"), (str(FOLDER.parent), "ipydevice")]
    return [(name.replace(home, "~", 1), short) for name, short in found if name.startswith(home)] + found


async def _run_all(paths: list[Path], output: Path | None) -> int:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(path: Path) -> bool:
        async with free:
            started = time.monotonic()
            notebook, wrong = await execute(path, store=output is None)
        if output is not None or not wrong:  # what people read stays as it was until it is right again
            nbformat.write(notebook, path if output is None else output / path.name)
        print(f"   {path.stem} ({time.monotonic() - started:.1f} s)", flush=True)
        for line in wrong:
            print(f"{path.name}: {line}", file=sys.stderr)
        return not wrong

    return 0 if all(await asyncio.gather(*map(one, paths))) else 1


def tutorials(names: list[str]) -> list[Path]:
    """Raises ValueError for a name that is no tutorial."""
    found = {path.stem: path for path in sorted(FOLDER.glob("[0-9]*.ipynb"))}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ValueError(f"no tutorial is called {unknown[0]!r}: there are {', '.join(found)}")
    return [found[name] for name in names] if names else list(found.values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tutorials, such as 03_data_parallel; all if left out")
    parser.add_argument("--output", type=Path, help="folder for executed copies; without it the notebooks are changed")
    asked = parser.parse_args(arguments)
    try:
        paths = tutorials(asked.names)
    except ValueError as error:
        parser.error(str(error))
    # The kernels import the ipydevice beside this file, and one thread each is enough for what they compute.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(FOLDER.parent), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if asked.output is not None:
        asked.output.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_run_all(paths, asked.output))


if __name__ == "__main__":
    sys.exit(main())
