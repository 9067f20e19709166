"""Failing notebooks in Chinese: every sentence is Chinese, no English one is left; names and code stay as they are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from caserun import case
from caserun.session import CARDS
from shells import Shell

import ipydevice
from ipydevice import hook, language, show
from ipydevice.diagnosis import Diagnosis
from ipydevice.show.tree import Block, Code, Entry, Folded, Heading, Options, Panel, Remark, Table

HERE = Path(__file__).parent
CASES = HERE.parent / "cases"
NOTEBOOKS = (
    "103_padding_mask_for_attention",
    "107_real_and_fake_labels_of_a_gan",
    "112_mel_filterbank_module",
    "114_adam_stepped_before_the_move",
    "116_rotary_tables_deep_in_the_blocks",
    "121_hidden_state_of_a_word_model",
    "123_bare_cuda_call_on_the_second_card",
    "127_stages_as_a_list_of_lists",
    "131_two_halves_on_two_cards",
    "134_cache_of_keys_from_a_warm_up",
    "138_scores_for_a_host_metric",
    "147_new_head_for_fine_tuning",
)
GOLDEN = (NOTEBOOKS[0], NOTEBOOKS[2], NOTEBOOKS[6], NOTEBOOKS[8])
CHINESE = re.compile("[\u4e00-\u9fff]")
CODE = re.compile(r"`[^`]*`")
# Words of English sentences that no name in these notebooks has.
ENGLISH = re.compile(
    r"(?<![\w.])(?:the|is|are|of|on|and|with|where|when|this|that|from|not|move|make|it|its)(?![\w.(])"
)
KINDS = {"报错", "类别"}  # PyTorch's own message, and keys

WORKSPACE = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.scale = torch.ones(4)
    def forward(self, x):
        return self.fc(x) * self.scale
net = Net().to("cuda:0")
half = nn.Sequential(nn.Linear(4, 4).to("cuda:0"), nn.Linear(4, 4))
optimizer = torch.optim.Adam(Net().parameters())
x = torch.ones(2, 4)
"""
CHECKED = """%%devicecheck cuda:0
total = 0
for i in range(3):
    y = net.fc(x)
    total += y.sum().item()
mask = torch.zeros(3)
"""


@pytest.fixture
def chinese(shell: Shell) -> Iterator[Shell]:
    """A shell with two virtual cards that speaks Chinese."""
    with ipydevice.virtual_gpus(2):
        shell.run("%load_ext ipydevice")
        shell.run("%config DeviceTools.language = 'zh'")
        shell.names.update(CARDS)
        yield shell
    language.use("auto")


def explained(shell: Shell, name: str) -> Diagnosis:
    """The diagnosis of a notebook."""
    for number, cell in enumerate(case.read(CASES / f"{name}.py").cells, 1):
        run = shell.run(cell, cell_id=f"id-{number}")
        if run.error is not None:
            break
    found = hook.of(shell.ip)
    assert found is not None and found.last is not None
    assert f"✗ {found.last.headline[:20]}" in run.text
    return found.last


def sentences(panel: Panel) -> Iterator[str]:
    """All that the panel says in words of its own."""
    yield panel.label
    for block in panel.blocks:
        yield from _of_block(block)


def _of_block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text=text):
            yield text
        case Remark(label=label, text=text):
            yield label
            if label not in KINDS:
                yield text
        case Folded(summary=summary, remarks=remarks):
            yield summary
            for remark in remarks:
                yield from _of_block(remark)
        case Options(options=options):
            for option in options:
                yield from (option.title, option.note, option.main)
        case Table(summary=summary, entries=entries):
            yield summary
            yield from (remark for entry in entries for remark in _of_entry(entry))
        case Code(label=label):
            yield label


def _of_entry(entry: Entry) -> Iterator[str]:
    if not entry.header:
        yield entry.remark


def is_code(text: str) -> bool:
    """A fix may be titled by the code that it is, and a remark be the call that was made."""
    return not CODE.sub("", text).strip() or re.fullmatch(r"[\w.]+\(\)(?: ×\d+)?", text) is not None


def assert_chinese(panel: Panel) -> None:
    for text in filter(None, sentences(panel)):
        assert is_code(text) or CHINESE.search(text), text
        assert not ENGLISH.search(CODE.sub("", text)), text


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_panel(chinese: Shell, name: str) -> None:
    diagnosis = explained(chinese, name)
    assert_chinese(show.tree_of(diagnosis))
    assert CHINESE.search(diagnosis.habit)
    assert diagnosis.confidence in ("certain", "likely", "guess")
    assert diagnosis.cause.isascii()
    if name in GOLDEN:
        text = show.text(diagnosis) + "\n"
        golden = HERE / "golden" / f"{name}.txt"
        if os.environ.get("IPYDEVICE_REGEN"):
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NOTEBOOKS[:4])
def test_keys_are_those_of_the_english_diagnosis(chinese: Shell, name: str) -> None:
    ours = explained(chinese, name)
    chinese.run("%config DeviceTools.language = 'en'")
    english = explained(chinese, name)
    assert (ours.cause, ours.confidence, ours.family, ours.message_id) == (
        english.cause,
        english.confidence,
        english.family,
        english.message_id,
    )
    assert [fix.kind for fix in ours.fixes] == [fix.kind for fix in english.fixes]
    assert [[edit.after for edit in fix.edits] for fix in ours.fixes] == [
        [edit.after for edit in fix.edits] for fix in english.fixes
    ]
    assert ours.headline != english.headline


def test_devices(chinese: Shell) -> None:
    assert chinese.run(WORKSPACE).error is None
    chinese.run("try:\n    net(x)\nexcept RuntimeError:\n    pass")
    inventory = ipydevice.inventory()
    assert any(row.odd for row in inventory.rows)
    assert inventory.fixes
    assert_chinese(show.tree_of(inventory))
    text = chinese.run("%devices").text
    for said in ("名字", "类别", "设备", "修改", "内存", "异常", "register_buffer"):
        assert said in text


def test_a_check(chinese: Shell) -> None:
    assert chinese.run(WORKSPACE).error is None
    run = chinese.run(CHECKED)
    assert run.error is None
    hung = hook.of(chinese.ip)
    assert hung is not None and hung.checked is not None
    assert_chinese(show.tree_of(hung.checked))
    for said in ("处设备错误", "原因", "修改", "循环", "不在 cuda:0 上", "在设备上累加"):
        assert said in run.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%devices nothing_here", "工作区里没有带设备的名字 'nothing_here'"),
        ("%devices --device gpu", "却得到 'gpu'"),
        ("%devices --virtual x", "却得到 'x'"),
        ("%devices --plain --json", "只能选一个"),
        ("%devicefix 1", "没有出现过设备错误"),
        ("%devicefix --report 1", "要单独使用"),
        ("%%devicecheck gpu\nx = 1", "%%devicecheck 需要一个设备"),
    ],
)
def test_errors_of_the_magics(chinese: Shell, line: str, said: str) -> None:
    chinese.run(WORKSPACE)
    assert said in chinese.run(line).text
