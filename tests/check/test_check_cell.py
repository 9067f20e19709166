"""A checked cell is a cell as any other: its place, its last value, its errors, its options."""

from __future__ import annotations

import pytest
import shells
from conftest import Notebook

X = "x = torch.randn(4, device=device)"


def test_file_name_lines_and_traceback_are_the_cells_own(notebook: Notebook) -> None:
    body = "def fail(n):\n    return 1 / n\n\nfail(0)\n"
    checked = notebook.check(body)
    plain = notebook.shell.run("pass\n" + body)
    for text in (checked.run.text, plain.text):
        assert "line 5" in text
        assert "line 3, in fail(n)" in text
    assert "devicecheck/" not in checked.run.text
    assert type(checked.run.error) is ZeroDivisionError
    trace = checked.run.error.__traceback__
    assert trace is not None
    files = set()
    while trace is not None:
        files.add(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert not any("devicecheck" in file for file in files)
    assert any(file.startswith("<ipython-input-") for file in files)


def test_partial_report_after_another_error(notebook: Notebook) -> None:
    notebook.run(X)
    checked = notebook.check("y = x + torch.ones(4)\nz = y.sum().item()\n{}['gone']\nw = x + torch.zeros(4)\n")
    assert type(checked.run.error) is KeyError
    assert checked.report.error == "KeyError"
    assert [line for line, _ in checked.mistakes] == [2]
    assert [transfer.expression for transfer in checked.report.transfers] == ["y.sum().item()"]
    assert "what comes after it was not checked" in checked.run.text


def test_keyboard_interrupt(notebook: Notebook) -> None:
    notebook.run(X)
    checked = notebook.check("y = x + torch.ones(4)\nraise KeyboardInterrupt\n")
    assert type(checked.run.error) is KeyboardInterrupt
    assert checked.report.error == "KeyboardInterrupt"
    assert len(checked.report.findings) == 1
    assert notebook.shell.run("x + torch.ones(4)").error is not None  # nobody repairs any more


def test_last_expression_is_displayed(notebook: Notebook) -> None:
    checked = notebook.check("a = 20\na + 22")
    assert "Out[3]: 42" in checked.run.text
    assert notebook.shell.run("_").text.strip().endswith("42")
    assert "Out" not in notebook.check("a + 22;").run.text


def test_top_level_await(notebook: Notebook) -> None:
    notebook.run(X + "\nimport asyncio")
    checked = notebook.check("await asyncio.sleep(0)\ny = x + torch.ones(4)\nawait asyncio.sleep(0)\nlen(y)")
    assert checked.run.error is None, checked.run.text
    assert checked.mistakes == [(3, "torch.ones(4)")]
    assert "Out[4]: 4" in checked.run.text


def test_a_syntax_error_is_the_cells(notebook: Notebook) -> None:
    run = notebook.shell.run("%%devicecheck\nx = 1\ny = (\n")
    assert type(run.error) is SyntaxError or "SyntaxError" in run.text
    assert "device mistake" not in run.text


def test_below_another_magic(notebook: Notebook) -> None:
    notebook.run(X)
    run = notebook.run("%%time\n%%devicecheck -o report\ny = x + torch.ones(4)\n")
    assert "1 device mistake" in run.text
    assert len(notebook.names["report"].findings) == 1


def test_above_another_magic(notebook: Notebook) -> None:
    notebook.run(X)
    run = notebook.run("%%devicecheck -o report\n%%time\ny = x + 1\nw = torch.ones(4)\nz = x * w\n")
    assert "Wall time" in run.text
    (finding,) = notebook.names["report"].findings
    assert finding.diagnosis.failed.source == "z = x * w"
    assert finding.diagnosis.failed.line == 5
    assert (
        finding.diagnosis.fixes[0]
        .edits[0]
        .after.startswith("%%devicecheck -o report\n%%time\ny = x + 1\nw = torch.ones(4, ")
    )


def test_a_cell_that_runs_another_cell(notebook: Notebook) -> None:
    notebook.run(X)
    checked = notebook.check("get_ipython().run_cell('y = x + torch.ones(4)')\nz = x + torch.zeros(4)\n")
    assert len(checked.report.findings) == 2
    assert checked.run.text.count("device mistakes in In") == 1


def test_blank_lines_above(notebook: Notebook) -> None:
    notebook.run(X)
    notebook.run("\n\n%%devicecheck -o report\ny = x + torch.ones(4)\n")
    (finding,) = notebook.names["report"].findings
    assert finding.diagnosis.failed.source == "y = x + torch.ones(4)"


def test_a_cell_of_the_same_name_is_no_check(notebook: Notebook) -> None:
    run = notebook.shell.run("%%devicechecker\nx = 1")
    assert "not found" in run.text


def test_by_hand(notebook: Notebook) -> None:
    notebook.run(X)
    run = notebook.run("get_ipython().run_cell_magic('devicecheck', '', 'y = x + torch.ones(4)')\n")
    assert "1 device mistake" in run.text


class TestOptions:
    def test_stop(self, notebook: Notebook) -> None:
        notebook.run(X)
        checked = notebook.check("y = x + torch.ones(4)\nz = x + torch.zeros(4)\n", "--stop")
        assert type(checked.run.error) is RuntimeError
        assert checked.report.stopped
        assert len(checked.report.findings) == 1
        assert not checked.report.findings[0].repaired
        assert "z" not in notebook.names

    def test_dry(self, notebook: Notebook) -> None:
        notebook.run(X + "\nold = 1\nkept = torch.zeros(3)\nseen = []\nnet = nn.BatchNorm1d(4)")
        cell = "old = 2\nnew = x + torch.ones(4)\nkept += 1\nseen.append(1)\nnet(torch.ones(2, 4))\n"
        checked = notebook.check(cell, "--dry")
        assert notebook.names["old"] == 1
        assert "new" not in notebook.names
        assert checked.report.dry
        assert set(checked.report.mutated) >= {"kept", "seen", "net.num_batches_tracked"}
        assert "not kept" in checked.run.text

    def test_dry_names_all_that_was_changed(self, notebook: Notebook) -> None:
        notebook.run(
            "net = nn.Linear(4, 2)\nhistory = {'loss': {'train': []}}\nclass Box: pass\nbox = Box(); box.n = 1\n"
            "opt = torch.optim.Adam(net.parameters())\nitems = [1, 2]\nsame = [x for x in range(3)]\nimport random"
        )
        cell = (
            "history['loss']['train'].append(1.0)\nbox.n = 2\nitems[0] = 5\nnet.to(device)\nnet.extra = 1\n"
            "net(torch.ones(1, 4, device=device)).sum().backward()\nopt.step()\n"
        )
        changed = notebook.check(cell, "--dry").report.mutated
        assert set(changed) == {
            "history['loss']['train']", "box.n", "items", "net.weight", "net.bias", "net.extra", "opt.state",
            "net.weight.grad", "net.bias.grad",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("write", "changed"),
        [
            ("net.weight.data.mul_(2)", {"net.weight"}),
            ("net.weight.data[0] = 5", {"net.weight"}),
            ("net.bias.data = net.bias.data + 1", {"net.bias"}),
            ("with torch.no_grad():\n    net.bias.add_(1)", {"net.bias"}),
            ("net.weight.data.sum(); net.weight.data + 1; t.detach(); t.data.cpu();", set()),
            ("t.data += 1; t.grad = torch.ones(3)", {"t", "t.grad"}),
            ("net(torch.ones(1, 4)).sum().backward()", {"net.weight.grad", "net.bias.grad"}),
            ("opt.zero_grad()", {"t.grad"}),
        ],
    )
    def test_dry_names_what_is_written_past_autograd(self, notebook: Notebook, write: str, changed: set[str]) -> None:
        grad = "" if "t.grad" in write else "t.grad = torch.ones(3)\n"
        notebook.run(
            f"net = nn.Linear(4, 2)\nt = torch.ones(3, requires_grad=True)\n{grad}opt = torch.optim.SGD([t], lr=0.1)"
        )
        assert set(notebook.check(write, "--dry").report.mutated) == changed

    def test_dry_keeps_neither_the_last_value_nor_the_random_numbers(self, notebook: Notebook) -> None:
        notebook.run(X + "\nimport random")
        seeds = "torch.manual_seed(1); random.seed(1); np.random.seed(1)\n"
        draw = "[torch.rand(1).item(), random.random(), float(np.random.rand())]"
        expected = notebook.run(seeds + draw).text.split(":", 1)[1]
        notebook.run(seeds + "None")
        kept = set(notebook.names["Out"])
        checked = notebook.check(draw, "--dry")
        assert "Out[" in checked.run.text  # shown, but not kept
        assert checked.report.mutated == ()
        assert set(notebook.names["Out"]) == kept
        assert notebook.run(draw).text.split(":", 1)[1] == expected

    def test_dry_after_an_error(self, notebook: Notebook) -> None:
        notebook.run(X)
        checked = notebook.check("new = x + torch.ones(4)\n1 / 0", "--dry")
        assert type(checked.run.error) is ZeroDivisionError
        assert "new" not in notebook.names
        assert len(checked.report.findings) == 1

    def test_stop_with_a_panel(self, notebook: Notebook) -> None:
        notebook.run(X)
        text = notebook.check("y = x + torch.ones(4)\n", "--stop").run.text
        assert "could not be repaired" not in text
        assert "told to stop" in text

    def test_all_options_at_once(self, notebook: Notebook) -> None:
        notebook.run(X)
        checked = notebook.check(
            "y = x + torch.ones(4)\nx.sum().item()\nz = torch.ones(2)", "cuda --dry --quiet --transfers"
        )
        assert len(checked.report.findings) == 1
        assert [transfer.expression for transfer in checked.report.transfers] == ["x.sum().item()"]
        assert [row.place.line for row in checked.report.elsewhere] == [2, 4]
        assert "y" not in notebook.names

    def test_every_card_where_no_number_is_asked_for(self, notebook: Notebook) -> None:
        cell = "a = torch.ones(3, device='cuda:1') * 2\nb = torch.ones(3, device='cuda:0') * 2\nc = torch.ones(3) * 2\n"
        report = notebook.check(cell * 3, "cuda").report
        assert [row.place.line for row in report.elsewhere] == [4, 7, 10]

    def test_used_elsewhere_by_index_and_in_lists(self, notebook: Notebook) -> None:
        notebook.run(X + "\nhost = torch.ones(4)\nindex = torch.tensor([0, 1])")
        cell = (
            "x[index]\ntorch.cat([host, host])\nhost.add_(1)\nhost.shape, host.device, len(host)\nx.add_(host.sum());"
        )
        report = notebook.check(cell, "cuda:0").report
        assert [(row.place.line, row.role) for row in report.elsewhere] == [
            (2, "used"), (3, "used"), (4, "used"), (6, "used"),
        ]  # fmt: skip

    def test_no_transfers(self, notebook: Notebook) -> None:
        notebook.run(X)
        checked = notebook.check("y = x.cpu()\nz = x.sum().item()\nw = x + torch.ones(4)", "--no-transfers")
        assert checked.report.transfers == ()
        assert len(checked.report.findings) == 1

    def test_quiet(self, notebook: Notebook) -> None:
        notebook.run(X)
        assert notebook.check("y = x + 1", "--quiet").run.text == ""
        assert "1 device mistake" in notebook.check("y = x + torch.ones(4)", "--quiet").run.text

    def test_expected_device(self, notebook: Notebook) -> None:
        notebook.run(X + "\nhost = torch.arange(6.0)")
        cell = "a = torch.zeros(3)\nb = host * 2\nc = host.to(device)\nd = x * 2\ne = torch.ones(2, device='cuda:1')\n"
        checked = notebook.check(cell, "cuda:0")
        found = [(row.place.line, row.role, row.device) for row in checked.report.elsewhere]
        assert found == [(2, "made", "cpu"), (3, "used", "cpu"), (6, "made", "cuda:1")]
        assert not checked.report.clean

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ("gpu:0", "takes a device"),
            ("gpu", "but got 'gpu'; the code to check stands in the lines below it"),
            ("y = x + 1", "%%devicecheck: unrecognized arguments: = x + 1. It takes [--stop]"),
            ("--fast", "%%devicecheck: unrecognized arguments: --fast. It takes [--stop]"),
            ("-o", "%%devicecheck: argument -o: expected one argument. It takes [--stop]"),
            ("-o 1x", "takes a name for the report"),
        ],
    )
    def test_bad_input(self, notebook: Notebook, options: str, said: str) -> None:
        run = notebook.shell.run(f"%%devicecheck {options}\nran = 1\n")
        assert said in run.text
        assert "ran" not in notebook.names
        assert "✗" not in run.text  # the words name devices, and no device error is told of

    @pytest.mark.parametrize(
        "cell", ["%%devicecheck", "%%devicecheck\n\n", "%%devicecheck -o report\n# later", "%devicecheck"]
    )
    def test_nothing_to_check(self, notebook: Notebook, cell: str) -> None:
        run = notebook.shell.run(cell)
        assert "%%devicecheck checks the code of its cell, and there is none" in run.text
        assert "no device mistake" not in run.text
        assert notebook.check("y = torch.ones(2)").report.calls == 1  # nothing was left open

    @pytest.mark.parametrize("device", ['"cuda:0"', "'cuda:0'", "device", "card"])
    def test_a_device_in_quotes_or_by_its_name(self, notebook: Notebook, device: str) -> None:
        notebook.run("card = torch.device(device)")
        assert notebook.check("y = torch.ones(2)", device).report.expected == "cuda:0"


def test_fix_from_the_report(notebook: Notebook) -> None:
    notebook.run(X)
    notebook.check("w = torch.ones(4)\ny = x * w\nz = torch.cat([x, torch.zeros(2)])")
    text = notebook.run("%devicefix 1").text
    assert "w = torch.ones(4, device=" in text
    assert "torch.zeros(2).to(device)" in text or "torch.zeros(2, device" in text
    assert "2 device mistakes" in notebook.run("%devicefix").text
    assert "takes the number of a fix, but got '99'" in notebook.shell.run("%devicefix 99").text


def test_unloading_takes_it_away(notebook: Notebook) -> None:
    notebook.run("%unload_ext ipydevice")
    run = notebook.shell.run("%%devicecheck\nx = 1")
    assert "not found" in run.text
    assert "open_line" not in str(notebook.shell.ip.input_transformers_cleanup)
    notebook.run("%load_ext ipydevice")
    assert str(notebook.shell.ip.input_transformers_cleanup).count("open_line") == 1


def test_in_a_kernel(kernel: shells.Kernel) -> None:
    kernel.run("%load_ext ipydevice")
    kernel.run("import torch, ipydevice\nipydevice.virtual_gpus(2).enable()\nx = torch.ones(3, device='cuda:0');")
    run = kernel.run("%%devicecheck\ny = x + torch.ones(3)\nlen(y)", cell_id="cell-a")
    assert run.status == "ok"
    assert "3" in run.text.splitlines()
    (machine,) = run.shown("application/vnd.ipydevice.v1+json")
    (finding,) = machine["findings"]
    assert finding["diagnosis"]["failed"]["line"] == 2
    assert machine["cell_id"] == "cell-a"
    assert any("1 device mistake" in page for page in run.shown("text/html"))
    failed = kernel.run("%%devicecheck\nraise ValueError('mine')")
    assert failed.status == "error"
    assert "line 2" in failed.traceback
