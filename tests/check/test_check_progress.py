"""What a long cell shows while it runs."""

from __future__ import annotations

import time
from typing import Any

import pytest
import shells
from conftest import Notebook

from ipydevice import show
from ipydevice.show import check_report
from ipydevice.show import progress as live

X = "x = torch.randn(4, device=device); import time"
SLOW = "for _ in range(4):\n    y = x + torch.ones(4)\n    x.sum().item()\n    time.sleep(0.1)\n"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long begins soon."""
    for name in ("SHORT", "EVERY", "PATIENCE"):
        monkeypatch.setattr(live, name, 0.06)


@pytest.mark.usefixtures("impatient")
def test_lines_in_a_terminal(notebook: Notebook) -> None:
    notebook.run(X)
    checked = notebook.check(SLOW)
    lines = [line for line in checked.run.text.splitlines() if line.startswith("ipydevice: checking: ")]
    assert 1 <= len(lines) <= 4, checked.run.text  # each after twice the time
    assert "1 device mistake so far" in lines[-1]
    assert "cop" in lines[-1] and "of torch" in lines[-1]
    assert len(checked.report.findings) == 1


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("end", ["{}['gone']", "raise KeyboardInterrupt"])
def test_it_ends_with_the_cell(notebook: Notebook, end: str) -> None:
    notebook.run(X)
    before = notebook.check(SLOW + end).run.text
    assert before.count("so far") >= 1
    assert "so far" not in notebook.run("time.sleep(0.3)").text


def test_a_short_cell_says_nothing(notebook: Notebook) -> None:
    notebook.run(X)
    assert "so far" not in notebook.check(SLOW).run.text


@pytest.mark.usefixtures("impatient")
def test_quiet(notebook: Notebook) -> None:
    notebook.run(X)
    assert "so far" not in notebook.check(SLOW, "--quiet").run.text


def test_what_fails_in_it_costs_only_the_line(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> str:
        raise OSError("gone")

    told = live.Progress(None, fail)
    told._over.wait = lambda wait: False  # type: ignore[method-assign, assignment]
    told.start()
    told.stop()
    assert capfd.readouterr() == ("", "")


def test_words() -> None:
    assert check_report.progress(1, 1, 1) == "checking: 1 call of torch, 1 copy or wait, 1 device mistake so far"
    said = check_report.progress(12345, 0, 2)
    assert said == "checking: 12,345 calls of torch, 0 copies or waits, 2 device mistakes so far"


def test_a_report_that_is_not_filled_says_so() -> None:
    from ipydevice import check

    with check() as report:
        assert "still running" in str(report)
        assert "still running" in show.html(report)
    assert "no device mistake" in str(report)


def test_updated_in_place_in_a_kernel(kernel: shells.Kernel) -> None:
    """One output, which is empty in the end: the report comes behind what the cell has printed."""
    kernel.run("%load_ext ipydevice\nimport time")
    kernel.run("from ipydevice.show import progress\nprogress.SHORT = progress.EVERY = 0.1")
    sent: list[tuple[str, Any]] = []
    message = kernel._client.session.msg("execute_request", request("%%devicecheck\ntime.sleep(1)\nprint('end')"))
    kernel._client.shell_channel.send(message)
    deadline = time.monotonic() + shells.TIMEOUT
    while time.monotonic() < deadline:
        told = kernel._client.get_iopub_msg(timeout=shells.TIMEOUT)
        if told["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        sent.append((told["msg_type"], told["content"]))
        if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
            break
    kinds = [kind for kind, _ in sent if kind in ("display_data", "update_display_data", "stream")]
    assert kinds[0] == "display_data"
    assert kinds.count("update_display_data") >= 2
    updates = [content for kind, content in sent if kind == "update_display_data"]
    assert len({content["transient"]["display_id"] for content in updates}) == 1
    assert "so far" in updates[0]["data"]["text/html"]
    assert updates[-1]["data"] == {"text/plain": "", "text/html": ""}
    reports = [content for kind, content in sent if kind == "display_data"][1:]
    assert "no device mistake" in reports[0]["data"]["text/plain"]


def request(code: str) -> dict[str, Any]:
    return {
        "code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
        "stop_on_error": True,
    }  # fmt: skip
