"""Diagnoses made by hand, displayed from a kernel: what the page does with them is tested, not how they came."""

from __future__ import annotations

from dataclasses import replace

from IPython import get_ipython

from ipydevice import show
from ipydevice.diagnosis import Diagnosis, Edit, Fix, Inventory, Mark, Place, Rerun, Row

# A notebook that fails without torch: data in one cell, use in the next.
CELLS = [
    "%load_ext panels\nimport panels",
    "class labels:\n    device = 'cpu'",
    "panels.failing()\nassert labels.device == 'cuda:0', 'still on the cpu'\nprint('passed', labels.device)",
    "print('the end')",
]
_LABELS, _USE = CELLS[1], CELLS[2]
fixes_break = False
_ran: dict[str, tuple[int, str | None]] = {}


def _remember(info: object) -> None:
    shell = get_ipython()
    _ran[info.raw_cell] = (shell.displayhook.prompt_count, getattr(info, "cell_id", None))


def load_ipython_extension(shell: object) -> None:
    shell.events.register("pre_run_cell", _remember)


def failing(device: str = "cuda:0") -> None:
    """Show the panel of this cell's failure, unless `labels` is where it should be."""
    if get_ipython().user_ns["labels"].device != device:
        show.display(breaking(diagnosis()) if fixes_break else diagnosis())


def diagnosis() -> Diagnosis:
    number, cell_id = _ran[_USE]
    made, made_id = _ran[_LABELS]
    again = Rerun(number, cell_id, _USE)
    moved = _LABELS.replace("cpu", "cuda:0")
    repair = "labels.device = 'cuda:0'"
    return Diagnosis(
        message="Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        family="common_check",
        message_id="PT001",
        headline="labels is on cpu, logits is on cuda:0",
        op="nll_loss_forward",
        failed=Place(number, cell_id, line=2, source=_USE.splitlines()[1]),
        failed_cell_source=_USE,
        marks=(Mark(7, 13, "cpu", "labels", (32,), "int64", stray=True),),
        explanation="labels is made in `labels` on the cpu and never moved",
        confidence="certain",
        evidence=("labels is never moved",),
        fixes=(
            Fix(
                "make labels on cuda:0",
                "edit",
                (Edit(_LABELS, moved, made, made_id),),
                rerun=(Rerun(made, made_id, moved), again),
            ),
            Fix("move labels now", "repair", setup=repair, rerun=(again,), note="lost when In [2] runs again"),
        ),
        placements=tuple(
            Row(f"{name}{i}", "tensor", device, frame, user, (i + 1,), "float32", 4 * (i + 1))
            for frame, user in (("In [3]", True), ("torch/nn/functional.py cross_entropy()", False))
            for i, (name, device) in enumerate([("labels", "cpu"), ("logits", "cuda:0")] * 20)
        ),
    )


def breaking(made: Diagnosis) -> Diagnosis:
    """Its fix makes the cell that it edits fail, so that the cell that failed must not run again."""
    (edit,) = made.fixes[0].edits
    edit = replace(edit, after="raise ValueError('broken')")
    again = (replace(made.fixes[0].rerun[0], source=edit.after), made.fixes[0].rerun[1])
    return replace(made, fixes=(replace(made.fixes[0], edits=(edit,), rerun=again),))


def many(count: int = 10_000) -> None:
    """An inventory of `count` parameters in modules of ten."""
    rows: list[Row] = [Row("model", "module", "cuda:0 + cpu", odd="on two devices")]
    for i in range(count // 10):
        rows.append(Row(f"model.layer{i}", "module", "cuda:0"))
        rows.extend(
            Row(
                f"model.layer{i}.p{k}",
                "parameter",
                "cpu" if k == 7 else "cuda:0",
                shape=(k, i),
                dtype="float32",
                bytes=i,
            )
            for k in range(9)
        )
    show.display(Inventory(tuple(rows), {"cuda:0": 3 * 2**30, "cpu": 2**20}))


def few(count: int) -> None:
    rows = tuple(Row(f"x{i}", "tensor", "cpu", shape=(), dtype="float32", bytes=4) for i in range(count))
    show.display(Inventory(rows, {"cpu": 4 * count} if count else {}))


HOSTILE = "<img src=x onerror='hacked=1'><script>hacked=1</script>\x1b[2J\u202e\"'&"


def hostile() -> None:
    again = Rerun(1, HOSTILE, HOSTILE)
    show.display(
        Diagnosis(
            message=HOSTILE,
            family=HOSTILE,
            headline=HOSTILE,
            failed=Place(1, None, line=1, source=HOSTILE),
            failed_cell_source=HOSTILE,
            marks=(Mark(0, 40, HOSTILE, HOSTILE),),
            explanation=HOSTILE,
            evidence=(HOSTILE,),
            notes=(HOSTILE,),
            fixes=(Fix(HOSTILE, "edit", (Edit(HOSTILE, HOSTILE, 1),), HOSTILE, (again,), HOSTILE),),
            placements=(Row(HOSTILE, HOSTILE, HOSTILE, HOSTILE, odd=HOSTILE, dtype=HOSTILE),),
        )
    )
