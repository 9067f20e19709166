"""A real ipyparallel cluster of four engines: our magics on all of them, one table, one diagnosis."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ipyparallel
import pytest
import shells

ROOT = Path(__file__).parents[2]
ENGINES = 4
_PROGRESS = re.compile(r"%px: +\d+%\|[^\r\n]*|\r|\x1b\[[\d;]*m")


class Client:
    """A notebook that is the cluster's client."""

    def __init__(self, shell: shells.Shell, cluster: Any, client: Any) -> None:
        self.shell, self.cluster, self.client = shell, cluster, client

    def run(self, source: str) -> shells.Run:
        """Runs a cell, and waits until what the engines print has come."""
        self.client.wait(timeout=60)
        found = self.shell.run(source)
        return shells.Run(_PROGRESS.sub("", found.text), found.error)


@pytest.fixture(scope="module")
def px() -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("OMP_NUM_THREADS", "1")
        cluster = ipyparallel.Cluster(n=ENGINES, log_level=40)
        client = cluster.start_and_connect_sync(activate=False)
        processes = client[:].apply_async(os.getpid).get_dict()
        try:
            with shells.shell() as shell:
                shell.ip.user_ns["client"] = client
                notebook = Client(shell, cluster, client)
                notebook.run("%load_ext ipydevice")
                notebook.run("client.activate().block = True")
                notebook.run("%px %load_ext ipydevice")
                notebook.run("%px %devices --virtual 4")
                notebook.run("%%px\nimport torch\nfrom torch import nn\nrank = 0")
                client[:].scatter("rank", range(ENGINES), flatten=True, block=True)
                notebook.run("%%px\ntorch.cuda.set_device(rank)\nmodel = nn.Linear(2, 2).cuda()\nx = torch.ones(3, 2)")
                yield notebook
        finally:
            for engine in client.ids:  # they would take seconds to end by themselves
                os.kill(processes[engine], signal.SIGKILL)
            cluster.stop_cluster_sync()


def test_the_workspaces(px: Client) -> None:
    run = px.run("%px %devices --plain")
    assert run.error is None
    for engine in range(ENGINES):
        assert re.search(rf"model +module +cuda:{engine} ", run.text), run.text


def test_one_table_for_all_engines(px: Client) -> None:
    text = px.run("%devices --ranks --plain").text
    assert text.startswith("4 ranks, nothing wrong")
    assert [line.split()[2] for line in text.splitlines()[-4:]] == [f"cuda:{n}" for n in range(4)]


def test_one_diagnosis_for_all_engines(px: Client) -> None:
    """In the cells of the notebook, with fixes that it can apply."""
    run = px.run("%%px\ny = x * 2\nmodel(y)")
    assert run.error is not None
    assert run.text.count("✗") == 1
    panel = run.text[run.text.index("✗") :]
    number = px.shell.ip.execution_count - 1
    assert panel.startswith("✗ engines 0-3: y is on cpu, model is on cuda:0")
    assert "devices and cards are those of engine 0; each has its own" in panel
    assert f"In [{number}], line 3" in panel
    fix = px.run("%devicefix 2")
    assert "%%px\n" in fix.text
    assert "y = x * 2\nmodel(y.to(" in fix.text


def test_the_fix_runs_on_all(px: Client) -> None:
    px.run("%%px\nmodel(x)")
    from ipydevice import hook

    hung = hook.of(px.shell.ip)
    assert hung is not None and hung.last is not None
    fix = next(fix for fix in hung.last.fixes if "model(x.to(" in "".join(edit.after for edit in fix.edits))
    run = px.run(fix.edits[0].after)
    assert run.error is None, run.text


def test_engines_that_fail_differently(px: Client) -> None:
    run = px.run("%%px\nif rank == 3:\n    1 / 0\nelif rank:\n    model(x)")
    assert "✗ engines 1-2: x is on cpu, model is on cuda:1" in run.text
    assert "engine 3: ZeroDivisionError" in run.text


def test_one_engine_by_its_own_call(px: Client) -> None:
    """What a function raises on an engine is read from its traceback."""
    run = px.run("def step():\n    return model(x)\nclient[1].apply_sync(step)")
    assert "✗ engine 1: " in run.text


def test_an_error_that_is_none_of_ours(px: Client) -> None:
    run = px.run("%px 1 / 0")
    assert "ZeroDivisionError" in run.text
    assert "✗" not in run.text


def test_engines_in_a_process_group(px: Client, tmp_path: Path) -> None:
    """The table comes once, from rank 0, and the client has the same."""
    where = f"init_method='file://{tmp_path}/group', rank=rank, world_size={ENGINES}"
    run = px.run(f"%%px\nimport torch.distributed as dist\ndist.init_process_group('gloo', {where})")
    assert run.error is None, run.text
    asked = px.run("%px %devices --ranks --plain").text
    assert asked.count("4 ranks, ") == 1
    assert "back end cpu:gloo,cuda:gloo" in asked
    assert "world 4" in px.run("%devices --ranks --plain").text
    assert px.run("%px dist.destroy_process_group()").error is None


def test_a_check_on_all_engines(px: Client) -> None:
    text = px.run("%%px\n%%devicecheck\nmodel(x)").text
    assert text.count("1 device mistake in ") == ENGINES
    assert px.run("%px print('still here')").text.count("still here") == ENGINES


def test_an_engine_that_is_busy_and_one_that_ends(px: Client) -> None:
    from ipydevice.ranks import engines

    client = px.client
    view = client[:]
    client[1].apply_async(time.sleep, 3)
    report = engines.collect(view, timeout=1)
    assert [row.rank for row in report.rows] == [0, 2, 3]
    assert [(one.rank, one.why.split(": ")[1]) for one in report.missing] == [
        (1, "its engine is busy with a cell, or hangs")
    ]
    client.wait(timeout=60)
    client[2].apply_async(os._exit, 1)
    end = time.monotonic() + 60
    while 2 in client.ids and time.monotonic() < end:
        time.sleep(0.1)
    report = engines.collect(view, timeout=5)
    assert [row.rank for row in report.rows] == [0, 1, 3]
    assert [(one.rank, one.why) for one in report.missing] == [(2, "its engine has ended")]
    assert len(engines.collect(client[0], timeout=5).rows) == 1
