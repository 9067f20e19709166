"""Checks inside checks, in threads, tasks, generators and other processes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import shells
import torch
from conftest import Notebook

import ipydevice
from ipydevice import fixes, messages, postmortem
from ipydevice.devicecheck import operands
from ipydevice.report import CheckReport
from ipydevice.virtual import virtual_gpus


@pytest.fixture
def x() -> Iterator[torch.Tensor]:
    with virtual_gpus(2):
        yield torch.ones(3, device="cuda:0")


def lines(report: CheckReport) -> list[str]:
    return [finding.diagnosis.failed.source for finding in report.findings]


def replaced() -> tuple[Any, ...]:
    """What a check puts functions of its own in the place of."""
    return threading.Thread.start, threading.excepthook, torch.nn.Module.__call__, warnings.showwarning


def in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class TestThreads:
    def test_a_subclass_with_its_own_run(self, x: torch.Tensor) -> None:
        class Worker(threading.Thread):
            def run(self) -> None:
                self.y = x + torch.ones(3)

        worker = Worker()
        with ipydevice.check() as report:
            worker.start()
            worker.join()
        assert lines(report) == ["self.y = x + torch.ones(3)"]
        assert "run" not in vars(worker)

    def test_a_pool(self, x: torch.Tensor) -> None:
        with ipydevice.check() as report, concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda n: (x + torch.full((3,), float(n))).sum().item(), range(4)))
        assert found == [3.0, 6.0, 9.0, 12.0]
        assert len(report.findings) == 1 and report.findings[0].count == 4
        assert sum(transfer.count for transfer in report.transfers) == 4

    def test_a_thread_inside_an_inner_check_is_counted_once(self, x: torch.Tensor) -> None:
        with ipydevice.check() as outer:
            with ipydevice.check() as inner:
                in_a_thread(lambda: (x + torch.ones(3)).sum().item())
            in_a_thread(lambda: x.sum().item())
        assert len(inner.findings) == len(outer.findings) == 1
        assert [sum(t.count for t in report.transfers) for report in (inner, outer)] == [1, 2]

    def test_two_threads_with_a_check_each(self, x: torch.Tensor) -> None:
        reports: dict[int, CheckReport] = {}
        ready = threading.Barrier(2)

        def work(number: int) -> None:
            with ipydevice.check() as reports[number]:
                ready.wait(30)
                for _ in range(number):
                    x + torch.ones(3)
                ready.wait(30)

        threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [reports[number].findings[0].count for number in (1, 2)] == [1, 2]

    def test_a_thread_from_before_is_left_alone(self, x: torch.Tensor) -> None:
        go, errors = threading.Event(), []

        def work() -> None:
            go.wait(30)
            try:
                x + torch.ones(3)
            except RuntimeError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        with ipydevice.check() as report:
            go.set()
            thread.join()
        assert len(errors) == 1 and report.findings == ()

    def test_one_that_outlives_the_check(self, x: torch.Tensor) -> None:
        go, errors = threading.Event(), []

        def work() -> None:
            go.wait(30)
            try:
                x + torch.ones(3)
            except RuntimeError as error:
                errors.append(error)

        with ipydevice.check() as report:
            thread = threading.Thread(target=work)
            thread.start()
        go.set()
        thread.join()
        assert len(errors) == 1 and report.findings == ()

    def test_the_traceback_of_a_thread_has_none_of_our_frames(self, kernel: shells.Kernel) -> None:
        kernel.run("%load_ext ipydevice\nimport threading")
        cell = "def work():\n    1 / 0\nt = threading.Thread(target=work)\nt.start()\nt.join()\n"
        text = kernel.run("%%devicecheck\n" + cell).text
        assert "ZeroDivisionError" in text
        assert "devicecheck/" not in text


class TestTasks:
    def test_tasks_that_take_turns(self, x: torch.Tensor) -> None:
        @ipydevice.check()
        async def first() -> None:
            await asyncio.sleep(0)
            x + torch.ones(3)
            await asyncio.sleep(0.02)
            x + torch.zeros(3)

        @ipydevice.check
        async def second() -> None:
            await asyncio.sleep(0.01)
            x.sum().item()
            await asyncio.sleep(0.05)
            x * torch.ones(3)

        async def unchecked() -> str:
            await asyncio.sleep(0.005)
            with pytest.raises(RuntimeError, match="same device"):
                x - torch.ones(3)
            return "left alone"

        async def both() -> list[Any]:
            return await asyncio.gather(first(), second(), unchecked())

        with concurrent.futures.ThreadPoolExecutor(1) as pool:  # a browser test may have left a loop in this thread
            assert pool.submit(asyncio.run, both()).result() == [None, None, "left alone"]
        assert lines(first.report) == ["x + torch.ones(3)", "x + torch.zeros(3)"]
        assert lines(second.report) == ["x * torch.ones(3)"]
        assert [t.expression for t in second.report.transfers] == ["x.sum().item()"]
        assert first.report.transfers == ()

    def test_an_async_cell_with_tasks(self, notebook: Notebook) -> None:
        notebook.run("x = torch.randn(4, device=device)\nimport asyncio")
        cell = (
            "async def add(n):\n    await asyncio.sleep(0)\n    return x + torch.full((4,), n)\n"
            "a, b = await asyncio.gather(add(1.0), add(2.0))\nasync for_later = 1\n"
        ).replace("async for_later = 1\n", "len(a)")
        checked = notebook.check(cell)
        assert checked.run.error is None, checked.run.text
        assert [line for line, _ in checked.mistakes] == [4]
        assert checked.report.findings[0].count == 2
        assert "Out[" in checked.run.text
        assert notebook.shell.run("x + torch.ones(4)").error is not None


class TestDecorated:
    def test_a_generator_without_its_consumer(self, x: torch.Tensor) -> None:
        @ipydevice.check()
        def batches(n: int) -> Iterator[torch.Tensor]:
            for k in range(n):
                got = yield x + torch.full((3,), float(k))
                assert got is None or got == "sent"
            return "end"

        generator = batches(2)
        next(generator)
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(3)  # the consumer is not checked
        generator.send("sent")
        with pytest.raises(StopIteration) as ended:
            next(generator)
        assert ended.value.value == "end"
        assert batches.report.findings[0].count == 2
        assert len(batches.report.findings) == 1

    def test_a_generator_that_is_closed_or_thrown_at(self, x: torch.Tensor) -> None:
        seen = []

        @ipydevice.check
        def forever() -> Iterator[int]:
            try:
                while True:
                    try:
                        yield 1
                    except KeyError:
                        yield 2
            finally:
                x + torch.ones(3)
                seen.append("closed")

        generator = forever()
        next(generator)
        assert generator.throw(KeyError("k")) == 2
        generator.close()
        assert seen == ["closed"]
        assert len(forever.report.findings) == 1

    def test_an_async_generator(self, x: torch.Tensor) -> None:
        @ipydevice.check()
        async def items() -> AsyncIterator[torch.Tensor]:
            for _ in range(3):
                await asyncio.sleep(0)
                yield x + torch.ones(3)

        async def collect() -> int:
            return len([item async for item in items()])

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert pool.submit(asyncio.run, collect()).result() == 3
        assert items.report.findings[0].count == 3

    def test_recursion_keeps_the_outermost_report(self, x: torch.Tensor) -> None:
        @ipydevice.check
        def down(n: int) -> torch.Tensor:
            return x * torch.ones(3) if n == 0 else down(n - 1) + torch.ones(3)

        assert down(2).tolist() == [3.0, 3.0, 3.0]
        assert [finding.count for finding in down.report.findings] == [1, 2]

    def test_an_error_leaves_its_report(self, x: torch.Tensor) -> None:
        @ipydevice.check()
        def step() -> None:
            x + torch.ones(3)
            raise KeyError

        with pytest.raises(KeyError):
            step()
        assert step.report.error == "KeyError" and len(step.report.findings) == 1

    def test_names_of_the_function_s_module(self, x: torch.Tensor) -> None:
        global net

        @ipydevice.check
        def forward() -> torch.Tensor:
            return net(x)

        net = torch.nn.Linear(3, 2)
        forward()
        (finding,) = forward.report.findings
        assert finding.diagnosis.culprit is not None and finding.diagnosis.culprit.expression == "net"

    @pytest.mark.parametrize("wrong", [3, object(), dict])
    def test_what_is_no_function(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match="decorates a function, coroutine or generator"):
            ipydevice.check()(wrong)


class TestOptions:
    def test_stop(self, x: torch.Tensor) -> None:
        with pytest.raises(RuntimeError, match="same device"), ipydevice.check(stop=True) as report:
            x + torch.ones(3)
        assert report.stopped and len(report.findings) == 1

    def test_no_transfers(self, x: torch.Tensor) -> None:
        with ipydevice.check(transfers=False) as report:
            x.sum().item()
        assert report.transfers == ()

    def test_an_outer_one_that_expects_a_device(self, x: torch.Tensor) -> None:
        with ipydevice.check("cuda:0") as outer:
            with ipydevice.check():
                torch.ones(4, device="cuda:1")
            torch.ones(5, device="cuda:1")
        assert [row.shape for row in outer.elsewhere] == [(4,), (5,)]


def test_closed_in_another_order(x: torch.Tensor) -> None:
    before = replaced()
    first, second = ipydevice.check(), ipydevice.check()
    outer, inner = first.__enter__(), second.__enter__()
    x + torch.ones(3)
    first.__exit__(None, None, None)
    x * torch.ones(3)
    second.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3)
    assert replaced() == before
    assert outer.findings == ()
    assert lines(inner) == ["x + torch.ones(3)", "x * torch.ones(3)"]


def test_workers_of_a_loader_raise_as_usual(notebook: Notebook) -> None:
    notebook.run(
        "class Data(torch.utils.data.Dataset):\n    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, i):\n        return torch.ones(3) * scale\nscale = torch.ones(3, device='cuda:1')"
    )
    checked = notebook.check("for batch in torch.utils.data.DataLoader(Data(), 2, num_workers=1):\n    pass\n")
    assert type(checked.run.error) is RuntimeError
    assert "DataLoader worker" in str(checked.run.error)
    assert all(not finding.repaired for finding in checked.report.findings)


def test_the_thread_that_pins_memory(notebook: Notebook) -> None:
    cell = (
        "data = torch.utils.data.TensorDataset(torch.ones(4, 3), torch.ones(4))\n"
        "for a, b in torch.utils.data.DataLoader(data, 2, num_workers=1, pin_memory=True):\n"
        "    y = a.to(device, non_blocking=True) * 2\n"
    )
    checked = notebook.check(cell)
    assert checked.run.error is None, checked.run.text
    assert checked.report.findings == ()
    assert [(t.expression, t.count, t.advice) for t in checked.report.transfers] == [
        ("a.to(device, non_blocking=True)", 2, "")
    ]


def test_keyboard_interrupt_in_a_kernel(kernel: shells.Kernel) -> None:
    """A real signal in the middle of a loop: traceback, partial report, and nobody watches afterwards."""
    kernel.run("%load_ext ipydevice")
    kernel.run("import torch, ipydevice, time\nipydevice.virtual_gpus(1).enable()\nx = torch.ones(3, device='cuda:0');")
    timer = threading.Timer(3.0, kernel._manager.interrupt_kernel)
    timer.start()
    run = kernel.run("%%devicecheck\nwhile True:\n    y = x + torch.ones(3)\n    time.sleep(0.001)\n")
    timer.join()
    assert run.status == "error" and "KeyboardInterrupt" in run.traceback
    assert "devicecheck/" not in run.traceback
    (machine,) = run.shown("application/vnd.ipydevice.v1+json")
    assert machine["error"] == "KeyboardInterrupt" and len(machine["findings"]) == 1
    assert kernel.run("x + torch.ones(3)").status == "error"


@pytest.mark.parametrize("times", range(4))
def test_an_interrupt_while_a_call_is_repaired(notebook: Notebook, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever we are at that moment, the traceback shows the user's line and nothing of ours."""
    notebook.run("x = torch.ones(3, device=device)")
    stages = [(messages, "recognise"), (postmortem, "begin"), (fixes, "propose"), (operands, "move")]
    monkeypatch.setattr(*stages[times], interrupt)
    checked = notebook.check("y = x + torch.ones(3)\n")
    assert type(checked.run.error) is KeyboardInterrupt
    assert "ipydevice/" not in checked.run.text
    assert "the above exception" not in checked.run.text
    assert "y = x + torch.ones(3)" in checked.run.text


def interrupt(*args: object, **kwargs: object) -> None:
    raise KeyboardInterrupt
