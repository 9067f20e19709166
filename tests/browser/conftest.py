"""Real JupyterLab, real Chromium. A missing Chromium is a failure: `make test` installs it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

expect.set_options(timeout=20_000)

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


class Jupyter:
    """JupyterLab or Notebook on a free loopback port, isolated from the settings of whoever runs this."""

    def __init__(
        self, folder: Path, app: str = "lab", *, labextension: bool = True, options: Sequence[str] = ()
    ) -> None:
        self.app = app
        self.root = folder / "root"
        self.token = secrets.token_hex(16)
        places = {name: folder / name for name in ("config", "data", "runtime", "ipython", "settings", "workspaces")}
        for place in (*places.values(), self.root):
            place.mkdir(parents=True)
        if labextension:  # where pip puts it for a user
            shutil.copytree(
                ROOT / "ipydevice" / "show" / "labextension", places["data"] / "labextensions" / "ipydevice"
            )
        else:  # the environment of the tests may have it, installed with the project
            config = places["config"] / "labconfig" / "page_config.json"
            config.parent.mkdir()
            config.write_text(json.dumps({"disabledExtensions": {"ipydevice": True}}))
        self.settings = places["settings"] / "@jupyterlab" / "apputils-extension"
        self.settings.mkdir(parents=True)
        quiet = {"fetchNews": "false", "checkForUpdates": False}
        (self.settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
        env = dict(
            os.environ,
            JUPYTER_CONFIG_DIR=str(places["config"]),
            JUPYTER_DATA_DIR=str(places["data"]),
            JUPYTER_RUNTIME_DIR=str(places["runtime"]),
            IPYTHONDIR=str(places["ipython"]),
            JUPYTERLAB_SETTINGS_DIR=str(places["settings"]),
            JUPYTERLAB_WORKSPACES_DIR=str(places["workspaces"]),
            JUPYTER_PLATFORM_DIRS="1",
            PYTHONPATH=os.pathsep.join([str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
        )
        for attempt in range(3):  # another process may take the port between bind() and the start
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            log = folder / f"server{attempt}.log"
            with log.open("w") as out:
                self.process = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "jupyter", app, "--no-browser", "--allow-root"),
                        "--ServerApp.ip=127.0.0.1",
                        f"--ServerApp.port={self.port}",
                        "--ServerApp.port_retries=0",
                        f"--IdentityProvider.token={self.token}",
                        f"--ServerApp.root_dir={self.root}",
                        *options,
                    ],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
            if self._answers(60):
                return
        raise RuntimeError(log.read_text()[-3000:])

    def use_theme(self, name: str) -> None:
        """For the pages opened from now on."""
        (self.settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": name}))

    def get(self, path: str) -> object:
        url = f"http://127.0.0.1:{self.port}{path}?token={self.token}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)

    def _answers(self, limit: float) -> bool:
        end = time.monotonic() + limit
        while time.monotonic() < end and self.process.poll() is None:
            try:
                self.get("/api/status")
            except OSError:
                time.sleep(0.1)
            else:
                return True
        return False

    def url(self, name: str) -> str:
        path = "lab/tree" if self.app == "lab" else "notebooks"
        reset = "&reset" if self.app == "lab" else ""
        return f"http://127.0.0.1:{self.port}/{path}/{name}?token={self.token}{reset}"

    def write(self, name: str, cells: list[str]) -> None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.root / name)

    def wait_for_kernel(self, name: str, limit: float = 60) -> None:
        """The page says "idle" before its kernel is connected, and a cell run then is lost: ask the server."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            for session in self.get("/api/sessions"):
                kernel = session.get("kernel") or {}
                ready = kernel.get("execution_state") == "idle" and kernel.get("connections", 0) >= 1
                if session["path"] == name and ready:
                    return
            time.sleep(0.1)
        raise TimeoutError(f"no idle kernel for {name} after {limit} s")

    def end_kernels(self) -> None:
        """Kernels of notebooks that nobody looks at any more: they take memory from the next ones."""
        for session in self.get("/api/sessions"):
            self.send("DELETE", f"/api/sessions/{session['id']}")

    def send(self, method: str, path: str) -> None:
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method, headers=headers)
        urllib.request.urlopen(request, timeout=30).close()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Notebook:
    """One notebook open in a page."""

    def __init__(self, page: Page, jupyter: Jupyter, name: str) -> None:
        self.page = page
        self.jupyter = jupyter
        self.name = name
        page.goto(jupyter.url(name), wait_until="domcontentloaded")
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").first
        self.wait()

    def wait(self) -> None:
        self.cells.first.wait_for()
        self.jupyter.wait_for_kernel(self.name)
        self.panel.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for()

    @property
    def cells(self) -> Locator:
        return self.panel.locator(".jp-Notebook .jp-Cell")

    def cell(self, index: int) -> Locator:
        return self.cells.nth(index)

    def source(self, index: int) -> str:
        self.cell(index).locator(".cm-content").wait_for()  # JupyterLab attaches editors when it comes to it
        lines = self.cell(index).locator(".cm-line").all_inner_texts()
        return "\n".join(line.rstrip("\n") for line in lines)

    def output(self, index: int) -> str:
        return self.cell(index).locator(".jp-OutputArea").inner_text()

    def prompt(self, index: int) -> str:
        return self.cell(index).locator(".jp-InputPrompt").inner_text()

    def run(self, index: int) -> Locator:
        cell = self.cell(index)
        before = self.prompt(index)
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        self.wait_for_run(index, before)
        return cell

    def wait_for_run(self, index: int, before: str) -> None:
        """Until the prompt is a number other than before."""
        self.page.wait_for_function(
            "([prompt, old]) => /^\\[\\d+\\]:/.test(prompt.textContent) && prompt.textContent.trim() !== old.trim()",
            arg=[self.cell(index).locator(".jp-InputPrompt").element_handle(), before],
        )

    def live(self, index: int) -> Locator:
        return self.cell(index).locator(".ipydevice-live")


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    server = Jupyter(tmp_path_factory.mktemp("lab"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def plain_jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """JupyterLab without our labextension, as when it was installed into another environment."""
    server = Jupyter(tmp_path_factory.mktemp("plain"), labextension=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def notebook_7(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    server = Jupyter(tmp_path_factory.mktemp("notebook"), "notebook")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here; `make chromium` installs it on Debian as root")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        yield started
        started.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for all tests: JupyterLab's scripts are read and compiled once."""
    opened = browser.new_context()
    opened.set_default_timeout(30_000)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    opened = context.new_page()
    opened.set_viewport_size({"width": 1200, "height": 900})
    yield opened
    folder = Path(os.environ.get("IPYDEVICE_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=str(folder / f"{request.node.name}.png"))
    opened.close()


@pytest.fixture
def open_notebook(page: Page, jupyter: Jupyter, request: pytest.FixtureRequest) -> Iterator[Callable[..., Notebook]]:
    servers: set[Jupyter] = {jupyter}

    def open_(cells: list[str], server: Jupyter = jupyter) -> Notebook:
        servers.add(server)
        name = f"{request.node.name}.ipynb"
        server.write(name, cells)
        return Notebook(page, server, name)

    yield open_
    for server in servers:
        server.end_kernels()
