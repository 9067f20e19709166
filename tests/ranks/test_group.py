"""The table through a real process group: of processes that do well, go wrong, die and hang."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import groups
import jobs
import pytest


def kinds(told: Any) -> dict[str, tuple[int, ...]]:
    return {one["trouble"]["kind"]: tuple(one["ranks"]) for one in told["troubles"]}


@pytest.fixture(scope="module")
def well() -> list[Any]:
    return groups.run(jobs.well, 2)


def test_two_processes_that_do_well(well: list[Any]) -> None:
    """Asked twice, between collectives of the program's own."""
    for told in well[0]:
        assert [row["rank"] for row in told["rows"]] == [0, 1]
        assert [row["current"] for row in told["rows"]] == ["cuda:0", "cuda:1"]
        assert told["missing"] == told["troubles"] == ()
        (model,) = told["rows"][1]["models"]
        assert model["wrapper"] == "DistributedDataParallel"
        assert list(model["devices"]) == ["cuda:1"]
    assert well[1] == [None, None]  # one table, not two


def test_what_all_share_stands_once(well: list[Any]) -> None:
    text = well[0][0]["text"]
    assert text.startswith("2 ranks, nothing wrong\n  all      host ")
    assert text.count("gloo") == 2  # "cpu:gloo,cuda:gloo", once
    assert "  1     " in text
    assert "✗" not in text


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("group")
    return groups.run(jobs.wrong, 4, rendezvous=groups.rendezvous_file(folder))[0]  # a file in place of a socket


def test_four_processes_on_one_card(wrong: Any) -> None:
    assert kinds(wrong) == {
        "not_wrapped": (0, 1, 2, 3),
        "local_rank": (1, 2, 3),
        "one_card": (0, 1, 2, 3),
        "models": (1,),
    }


def test_the_parameter_that_differs_is_named(wrong: Any) -> None:
    said = "net[2].weight is float32[3, 4] trained on rank 1 and float32[2, 4] trained on rank 0, and 6 more"
    assert said in " ".join(wrong["text"].split())


def test_differences_are_marked(wrong: Any) -> None:
    lines = {line.split()[0]: line for line in wrong["text"].splitlines() if line.strip()[:1].isdigit()}
    assert "✗ cuda:0 (card 0)" in lines["2"]
    assert "✗ cuda:0 " in lines["1"] and "? cuda:0 " in lines["2"]
    assert wrong["html"].count("<tr>") == 5
    assert 'title="differs, or looks wrong">✗ cuda:0' in wrong["html"]


def test_a_rank_without_set_device() -> None:
    told, _ = groups.run(jobs.without_set_device, 2)
    assert kinds(told) == {"current_device": (1,), "one_card": (0, 1)}
    assert "the model is on cuda:1 and the current device is cuda:0" in told["text"]
    assert "torch.cuda.set_device(1) first of all" in told["text"]


def test_asked_by_one_alone() -> None:
    """The others are named, and the group's own collectives are not disturbed."""
    told, other = groups.run(jobs.one_asks, 2)
    assert other is None
    assert [(one["rank"], one["pid"]) for one in told["missing"]] == [(1, None)]
    assert "it has ended, hangs, or does not come to this call" in told["text"]


def test_a_rank_that_dies() -> None:
    told, dead = groups.run(jobs.one_dies, 2)
    assert dead is None
    first, second = told
    assert first["missing"] == ()
    assert [(one["rank"], one["why"]) for one in second["missing"]] == [(1, "its process has ended")]
    assert second["missing"][0]["pid"] == first["rows"][1]["pid"]


def test_the_keeper_of_the_store_dies() -> None:
    dead, told = groups.run(jobs.keeper_dies, 2)
    assert dead is None
    (missing,) = told["missing"]
    assert missing["rank"] == 0
    assert "the process that keeps it is gone" in missing["why"]
    assert [row["rank"] for row in told["rows"]] == [1]


def test_a_rank_that_hangs() -> None:
    (_, second), _ = groups.run(jobs.one_hangs, 2)
    (missing,) = second["missing"]
    assert missing["rank"] == 1
    assert "its process runs: it hangs, or does not come to this call" in missing["why"]
    assert "1 <= " not in second["text"]
    assert 1 <= second["seconds"] < 30


def test_calls_that_some_have_missed_do_no_harm() -> None:
    assert groups.run(jobs.out_of_step, 2)[0] == [[1], [], []]


def test_another_rank_gets_the_table() -> None:
    first, second = groups.run(jobs.another_gets_it, 2)
    assert first == ["to has to be a rank of this group, 0 to 1, and is 2", None]
    assert len(second[1]["rows"]) == 2


def test_memory_that_is_not_balanced() -> None:
    told = groups.run(jobs.unbalanced, 4)[0]
    found = kinds(told)
    assert found["balance"] == (0,)
    assert found["memory_elsewhere"] == (1,)
    assert "works on cuda:1 and holds 4.0 MiB on cuda:0 too; a checkpoint loaded without map_location" in told["text"]


def test_report_files(tmp_path: Path) -> None:
    """Written in the ``except`` of a program; one rank never comes to it."""
    from ipydevice.ranks import files

    written = groups.run(jobs.files, 3, str(tmp_path))
    assert [Path(path).name for path in written[:2]] == ["rank-00000.json", "rank-00001.json"]
    report = files.merge(tmp_path / "reports")
    assert [row.rank for row in report.rows] == [0, 1]
    assert [(one.rank, one.why) for one in report.missing] == [
        (2, "no report: it ended before it wrote one, or never began")
    ]
    assert "✗        ranks 0-1: torch.ones(1, 4) is on cpu, net is on cuda:0 (" in str(report)
