"""What one process sees of itself, what rows tell together, report files, and the ways to ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ipydevice
from ipydevice.ranks import across, alone, files, here, modules, table
from ipydevice.ranks.report import CardMemory, Missing, RankRow, RanksReport
from ipydevice.virtual import virtual_gpus

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    with virtual_gpus(4):
        yield


def judged(model: Any, **facts: Any) -> list[str]:
    """Kinds of troubles of a process with these facts about its group and launcher."""
    row = replace(here.row({"net": model}), troubles=(), **facts)
    return [trouble.kind for trouble in alone.judged(row, {"net": model}).troubles]


def wrapped(model: nn.Module, ids: list[int] | None) -> Any:
    """A DistributedDataParallel as its constructor leaves it, without the group that it would ask for."""
    ddp = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
    nn.Module.__init__(ddp)
    ddp.module, ddp.device_ids, ddp.device_type = model, ids, "cuda"
    return ddp


GROUP = {"backend": "cpu:gloo,cuda:nccl", "nccl": "2.27.3", "world_size": 2, "rank": 1, "local_rank": 1}


def test_a_right_process() -> None:
    torch.cuda.set_device(1)
    try:
        assert judged(wrapped(nn.Linear(2, 2).to("cuda:1"), [1]), **GROUP) == []
    finally:
        torch.cuda.set_device(0)


@pytest.mark.parametrize(
    ("model", "facts", "kind"),
    [
        (lambda: wrapped(nn.Linear(2, 2).to("cuda:1"), [0]), {}, "device_ids"),
        (lambda: wrapped(nn.Linear(2, 2).to("cuda:1"), [1]), {}, "current_device"),
        (lambda: nn.Linear(2, 2).to("cuda:0"), {}, "not_wrapped"),
        (lambda: nn.DataParallel(nn.Linear(2, 2).cuda()), {}, "data_parallel"),
        (lambda: wrapped(nn.Linear(2, 2), None), {"backend": "cpu:nccl,cuda:nccl"}, "cpu_with_nccl"),
        (lambda: wrapped(nn.Linear(2, 2), None), {"backend": "cuda:nccl"}, "cpu_with_nccl"),
        (lambda: wrapped(nn.Linear(2, 2).cuda(), [0]), {"backend": "cpu:gloo,cuda:gloo"}, "cuda_with_gloo"),
        (lambda: wrapped(nn.Linear(2, 2).cuda(), [0]), {"backend": "cpu:gloo,xpu:xccl"}, "no_backend"),
        (lambda: wrapped(nn.Linear(2, 2), None), {}, "on_host"),
        (lambda: wrapped(nn.Linear(2, 2).to("cuda:3"), [3]), {"rank": 3, "local_rank": 1}, "local_rank"),
        (lambda: wrapped(nn.SyncBatchNorm(2), None), {}, "sync_batch_norm"),
        (lambda: nn.SyncBatchNorm(2).cuda(), {}, "sync_batch_norm"),
        (lambda: wrapped(nn.BatchNorm1d(2).cuda(), [0]), {}, "batch_norm"),
        (lambda: nn.Linear(2, 2).cuda(), {"launched_as": 0}, "rank"),
        (lambda: nn.Linear(2, 2).cuda(), {"local_rank": 7}, "too_few_cards"),
    ],
)
def test_troubles_of_one_process(model: Any, facts: dict[str, Any], kind: str) -> None:
    assert kind in judged(model(), **{**GROUP, **facts})


def test_words_for_rank_in_place_of_local_rank() -> None:
    model = wrapped(nn.Linear(2, 2).to("cuda:3"), [3])
    row = replace(here.row({"net": model}), **{**GROUP, "rank": 3, "local_rank": 1})
    (told,) = [one for one in alone.judged(row, {"net": model}).troubles if one.kind == "local_rank"]
    assert told.text == "the model is on card 3, its RANK; the card of a process is that of its LOCAL_RANK, 1"


def test_one_process_alone() -> None:
    net = nn.Linear(2, 2).cuda()
    report = ipydevice.debug_ddp(net)
    assert report is not None
    assert [model.name for model in report.rows[0].models] == ["net"]
    assert report.clean
    assert str(report).startswith("1 rank, nothing wrong")
    with pytest.raises(TypeError, match="expected an nn.Module, or a dictionary of them by name, and 'model' is a int"):
        ipydevice.debug_ddp(3)


def test_the_callers_own_models() -> None:
    net = nn.Linear(2, 2).cuda()
    report = ipydevice.debug_ddp()
    assert report is not None
    assert [model.name for model in report.rows[0].models] == ["net"]
    assert net.weight.is_cuda


def test_the_launchers_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "5")
    monkeypatch.setenv("SLURM_LOCALID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    row = here.row()
    assert (row.rank, row.local_rank, row.world_size) == (5, 1, 8)


def test_rows_survive_their_way() -> None:
    row = here.row({"net": nn.Linear(2, 2).cuda()})
    assert RankRow.from_dict(json.loads(json.dumps(row.to_dict()))) == row


def test_models_of_a_workspace() -> None:
    inner = nn.Linear(2, 2)
    outer = nn.Sequential(inner)
    assert list(modules.models_in({"inner": inner, "outer": outer, "_": outer, "n": 3})) == ["outer"]
    parallel = nn.DataParallel(outer)
    assert list(modules.models_in({"outer": outer, "parallel": parallel, "loss": nn.MSELoss()})) == ["parallel"]


def test_nothing_of_the_users_runs() -> None:
    class Own(nn.Linear):
        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("asked")

        named_modules = named_buffers = parameters = modules = named_parameters

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"asked for {name}")

    own = nn.Linear(2, 2)
    own.__class__ = Own
    row = here.row(modules.models_in({"own": own, "outer": wrapped(own, [0])}))
    assert row.models[0].devices == {"cpu": 24}
    assert modules.parameters_of({"own": own}) == {
        "own.weight": "float32[2, 2] trained",
        "own.bias": "float32[2] trained",
    }


def rows(count: int, **facts: Any) -> list[RankRow]:
    memory = (CardMemory("cuda:0", 1 << 30, 1 << 30, 1 << 30, 80 << 30),)
    known = {"torch": "2.9", "backend": "nccl", "memory": memory, "peers": (), "cards": 8, **facts}
    return [
        RankRow(n, f"node{n // 8}", 1000 + n, count, n % 8, n, f"cuda:{n % 8}", f"GPU-{n}", **known)
        for n in range(count)
    ]


def test_what_differs_is_told_against_the_many() -> None:
    found = rows(16)
    found[5] = replace(found[5], torch="2.8", cards=7)
    found[9] = replace(found[9], memory=(CardMemory("cuda:1", 3 << 30, 3 << 30, 3 << 30, 80 << 30),))
    report = across.compared(RanksReport(tuple(found)))
    assert [one.trouble.text for one in report.troubles] == [
        "torch differs: 2.8 on rank 5, 2.9 on 15 others",
        "7 cards are seen here and 8 elsewhere",
        "memory is not balanced: rank 9 holds 3.0 GiB, the middle is 1.0 GiB",
    ]
    assert across.compared(RanksReport(tuple(rows(16)))).clean


def test_two_ranks_on_one_card_of_one_host_alone() -> None:
    found = [replace(row, card="GPU-0") for row in rows(10) if row.rank in (0, 1, 9)]  # 9 is on another host
    (trouble,) = across.compared(RanksReport(tuple(found))).troubles
    assert (trouble.trouble.kind, trouble.ranks) == ("one_card", (0, 1))


def test_a_thousand_ranks_stay_readable() -> None:
    found = rows(1000)
    found[700] = replace(found[700], torch="2.8")
    text = str(across.compared(RanksReport(tuple(found), (Missing(1000, "no answer in 10 s"),))))
    assert len(text.splitlines()) < 60
    assert "  700 " in text
    assert "✗ 2.8" in text
    assert "and 967 more without a mark" in text
    assert text.startswith("1,001 ranks on 125 hosts, 1 missing, 1 thing to look at")


def test_ranks_in_words() -> None:
    assert table.ranks_text((3,)) == "rank 3"
    assert table.ranks_text((0, 1, 2, 7)) == "ranks 0-2, 7"


def test_names_cannot_write_into_the_page() -> None:
    (row,) = rows(1)
    report = RanksReport((replace(row, host="<b>\x1b[31m", error="<script>"),))
    page = across.compared(report)._repr_html_()
    assert "<script>" not in page
    assert "\x1b" not in str(report)


class TestFiles:
    def ipydevice(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        code = (
            "import sys; from ipydevice.cli import main; code = main()\n"
            "print('torch' in sys.modules, file=sys.stderr); sys.exit(code)"
        )
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, check=False
        )

    def written(self, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int = 3) -> None:
        model = nn.Linear(2, 2).cuda()
        for rank in range(count):
            monkeypatch.setenv("RANK", str(rank))
            monkeypatch.setenv("WORLD_SIZE", str(count))
            ipydevice.write_rank_report(folder, model)

    def test_merged_on_the_command_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written(tmp_path, monkeypatch)
        ended = self.ipydevice("ranks", str(tmp_path))
        assert ended.returncode == 1  # three on one card
        assert "3 processes work on one card" in ended.stdout
        assert ended.stderr.strip() == "False"  # torch isn't needed to read them
        told = json.loads(self.ipydevice("ranks", str(tmp_path), "--json").stdout)
        assert [row["rank"] for row in told["rows"]] == [0, 1, 2]

    def test_spoiled_and_missing_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written(tmp_path, monkeypatch, 4)
        (tmp_path / "rank-00001.json").write_text('{"row": 3}')
        (tmp_path / "rank-00002.json").write_text("{")
        (tmp_path / "rank-00003.json").unlink()
        (tmp_path / "notes.json").write_text("{}")
        report = files.merge(tmp_path)
        assert [row.rank for row in report.rows] == [0]
        assert [(one.rank, one.why.split(":")[0]) for one in report.missing] == [
            (1, "rank-00001.json cannot be read (TypeError)"),
            (2, "rank-00002.json cannot be read (JSONDecodeError)"),
            (3, "no report"),
        ]

    def test_models_that_differ_are_found_in_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for rank, model in enumerate((nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3))):
            monkeypatch.setenv("RANK", str(rank))
            ipydevice.write_rank_report(tmp_path, model)
        said = "model.weight is float32[3, 2] trained on rank 2 and float32[2, 2] trained on rank 0"
        assert said in " ".join(str(files.merge(tmp_path)).split())

    def test_folders_that_are_none(self, tmp_path: Path) -> None:
        ended = self.ipydevice("ranks", str(tmp_path / "nowhere"))
        assert ended.returncode == 2
        assert "no such folder; give the one that write_rank_report(folder) was called with" in ended.stderr
        assert "holds no report of a rank (rank-*.json)" in self.ipydevice("ranks", str(tmp_path)).stderr


@pytest.mark.slow
def test_a_program_under_torchrun(tmp_path: Path) -> None:
    """Two processes, of which one fails; the launcher ends the other, and both have told."""
    (tmp_path / "train.py").write_text(TRAIN)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(launch, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 1, ended.stderr
    assert "2 ranks, " in ended.stdout  # the table of debug_ddp, once
    assert ended.stdout.count("  rank  pid") == 1
    report = files.merge(tmp_path / "reports")
    assert [(row.rank, row.local_rank, row.current) for row in report.rows] == [(0, 0, "cuda:0"), (1, 1, "cuda:1")]
    (error,) = [one for one in report.troubles if one.trouble.kind == "error"]
    assert error.ranks == (1,)
    assert error.trouble.text.startswith("batch is on cpu, ddp.module is on cuda:1 (")


TRAIN = """
import torch
import torch.distributed as dist
from torch import nn
import ipydevice

ipydevice.virtual_gpus(2).enable()
dist.init_process_group("gloo")
device = ipydevice.get_device()
torch.cuda.set_device(device)
ddp = nn.parallel.DistributedDataParallel(nn.Linear(4, 2).to(device), device_ids=[device.index])
print(ipydevice.debug_ddp(ddp) or "", flush=True)
batch = torch.ones(3, 4)
try:
    ddp.module(batch if dist.get_rank() == 1 else batch.to(device))
except RuntimeError as error:
    ipydevice.write_rank_report("reports", ddp, error)
    raise
ipydevice.write_rank_report("reports", ddp)
dist.barrier()
"""


class TestMagic:
    def test_the_table(self, shell: Any) -> None:
        shell.run("%load_ext ipydevice\nimport torch\nfrom torch import nn\nnet = nn.Linear(2, 2).cuda()")
        assert "1 rank, nothing wrong" in shell.run("%devices --ranks").text
        text = shell.run("%devices --ranks net --plain").text
        assert "model net (Linear, 2 tensors)" in " ".join(text.split())
        assert json.loads(shell.run("%devices --ranks --json").text)["rows"][0]["current"] == "cuda:0"
        assert "'torch' is a module" in shell.run("%devices --ranks torch").text
