"""Diagnoses and inventories as the rest of the project makes them, one for each kind of panel."""

from __future__ import annotations

from dataclasses import replace

from ipydevice.diagnosis import (
    DeviceMemory,
    Diagnosis,
    Edit,
    Fix,
    Inventory,
    Layers,
    Mark,
    MarkedLine,
    Place,
    Rerun,
    Row,
)

LOOP = """\
for images, labels in loader:
    images = images.to(device)
    logits = model(images)
    loss = F.cross_entropy(logits, labels)
"""
_AGAIN = Rerun(7, "c7", LOOP)

STANDARD = Diagnosis(
    message=(
        "Expected all tensors to be on the same device, but got target is on cpu, different from other tensors on "
        "cuda:0 (when checking argument in method wrapper_CUDA_nll_loss_forward)"
    ),
    family="common_check",
    message_id="PT001",
    headline="labels is on cpu, logits is on cuda:0",
    devices=("cpu", "cuda:0"),
    op="nll_loss_forward",
    failed=Place(7, "c7", line=4, source="loss = F.cross_entropy(logits, labels)"),
    failed_cell_source=LOOP,
    marks=(
        Mark(23, 29, "cuda:0", "logits", (32, 10), "float32"),
        Mark(31, 37, "cpu", "labels", (32,), "int64", stray=True),
    ),
    origin=Place(7, "c7", line=1, source="for images, labels in loader:"),
    cause="label_not_moved",
    confidence="certain",
    evidence=("images is moved in line 2", "labels is never moved", "all 10 parameters of model are on cuda:0"),
    explanation=(
        "labels comes out of `for images, labels in loader` (In [7], line 1); "
        "images is moved in line 2, labels never is"
    ),
    habit="move a batch as a whole: `batch = [x.to(device) for x in batch]`",
    fixes=(
        Fix(
            "move labels in the loop",
            "edit",
            (Edit(LOOP, LOOP.replace("device)\n", "device)\n    labels = labels.to(device)\n", 1), 7, "c7"),),
            rerun=(_AGAIN,),
        ),
        Fix(
            "move it at the call",
            "edit",
            (Edit(LOOP, LOOP.replace("logits, labels)", "logits, labels.to(device))"), 7, "c7"),),
            rerun=(_AGAIN,),
        ),
    ),
    placements=(
        Row("images", "tensor", "cuda:0", "In [7]", True, (32, 1, 28, 28), "float32", 100_352),
        Row("labels", "tensor", "cpu", "In [7]", True, (32,), "int64", 256, odd="meets logits on cuda:0"),
        Row("model", "module", "cuda:0", "In [7]"),
        Row("input", "tensor", "cuda:0", "torch/nn/functional.py cross_entropy()", False, (32, 10), "float32", 1280),
    ),
)

SEVERAL_LINES = replace(
    STANDARD,
    failed=Place(7, "c7", line=4, source="loss = F.cross_entropy("),
    marks=(),
    further=(
        MarkedLine(5, "logits, labels,", (
            Mark(0, 6, "cuda:0", "logits", (32, 10), "float32"),
            Mark(8, 14, "cpu", "labels", (32,), "int64", stray=True),
        ), 4),
        MarkedLine(6, "weight=class_weights,", (Mark(7, 20, "cuda:0", "class_weights", (10,), "float32"),), 4),
        MarkedLine(7, "label_smoothing=smoothing,", (Mark(16, 25, "cpu", "smoothing", (), "float32", stray=True),), 4),
    ),
)  # fmt: skip

UNSURE = Diagnosis(
    message="Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!",
    family="common_check",
    message_id="PT001",
    headline="x is on cuda:1, y is on cuda:0",
    op="add",
    failed=Place(file="train.py", line=112, source="x + y", function="step"),
    marks=(Mark(0, 1, "cuda:1", "x", (3,), "float32", stray=True), Mark(4, 5, "cuda:0", "y", (3,), "float32")),
    cause="two_devices",
    confidence="guess",
    evidence=("three other tensors in step() are on cuda:0",),
    explanation="either may be meant; most of the tensors around are on cuda:0",
    fixes=(
        Fix(
            "move x in train.py",
            "patch",
            (Edit("x + y\n", "x.to(y.device) + y\n", file="train.py"),),
            "import importlib, train\nimportlib.reload(train)",
            (Rerun(3, "c3", "train.step()"),),
            diff="--- train.py\n+++ train.py\n@@ -112 +112 @@\n-x + y\n+x.to(y.device) + y\n",
        ),
        Fix(
            "move x now",
            "repair",
            setup="x = x.to('cuda:0')",
            rerun=(Rerun(3, None, "step()"),),
            note="lost at restart",
        ),
    ),
    notes=("the code at fault is lightning's, not yours", "the table could not be made"),
)

WITHOUT_CULPRIT = Diagnosis(
    message="Torch not compiled with CUDA enabled",
    family="availability",
    headline="this PyTorch has no CUDA: torch 2.13.0+cpu",
    failed=Place(1, None, line=1, source='model.to("cuda")'),
    confidence="certain",
    explanation="the installed build of PyTorch is for the CPU only",
)

WIDE = Diagnosis(
    message="…",
    family="reader",
    headline="数据 is on cpu, 模型 is on cuda:0",
    failed=Place(2, line=1, source="出力 = 模型(数据)\t# 推論"),
    marks=(Mark(5, 7, "cuda:0", "模型"), Mark(8, 10, "cpu", "数据", stray=True)),
    confidence="likely",
    explanation="数据 was made on the cpu",
)

HOSTILE_NAME = "<script>alert(1)</script>\x1b[2J\u202e\"'&`x`\ud800\n"
HOSTILE = Diagnosis(
    message=HOSTILE_NAME,
    family=HOSTILE_NAME,
    headline=HOSTILE_NAME,
    op=HOSTILE_NAME,
    message_id=HOSTILE_NAME,
    failed=Place(1, HOSTILE_NAME, file=HOSTILE_NAME, line=1, source=HOSTILE_NAME * 2),
    failed_cell_source=HOSTILE_NAME,
    marks=(Mark(3, 20, HOSTILE_NAME, HOSTILE_NAME, (1,), HOSTILE_NAME), Mark(30, 900, "cpu", "b", stray=True)),
    evidence=(HOSTILE_NAME,),
    explanation=HOSTILE_NAME,
    habit=HOSTILE_NAME,
    notes=(HOSTILE_NAME,),
    fixes=(
        Fix(
            HOSTILE_NAME,
            "edit",
            (Edit(HOSTILE_NAME, HOSTILE_NAME * 2, 1, "c"),),
            HOSTILE_NAME,
            (Rerun(1, "c", HOSTILE_NAME),),
            HOSTILE_NAME,
        ),
    ),
    placements=(
        Row(HOSTILE_NAME, HOSTILE_NAME, HOSTILE_NAME, HOSTILE_NAME, True, (1,), HOSTILE_NAME, 4, HOSTILE_NAME),
    ),
)

WORKSPACE = Inventory(
    rows=(
        Row("model", "module", "cuda:0 + cpu", odd="on two devices"),
        Row("model.fc.weight", "parameter", "cuda:0", shape=(10, 20), dtype="float32", bytes=800, requires_grad=True),
        Row("model.pe", "tensor", "cpu", shape=(10, 20), dtype="float32", bytes=800, odd="no .to() will move it"),
        Row("x", "tensor", "cpu", shape=(3,), dtype="float32", bytes=12),
        Row("y", "tensor", "cpu", shape=(2,), dtype="float32", bytes=8, note="view of x"),
    ),
    bytes_by_device={"cuda:0": 800, "cpu": 812},
    left=3,
)

SPLIT = Inventory(
    rows=(
        Row(
            "model", "module", "cuda:0 + cuda:1 + cpu", bytes=3_000, odd="head on cpu", remedy="model.to('cuda:0')",
            layers=(
                Layers("cuda:0", 12, "layers[0]", "layers[11]"), Layers("cuda:1", 11, "layers[12]", "layers[22]"),
                Layers("cpu", 1, "head", "head"),
            ),
        ),
    ),
    bytes_by_device={"cuda:0": 1600, "cuda:1": 1300, "cpu": 100},
    fixes=(Fix("`model.to('cuda:0')`", "repair", setup="model.to('cuda:0')", note="for the objects as they are now"),),
    memory=(
        DeviceMemory(
            "cuda:0", 1600, 5 * 2**20, 2 * 2**30, 3 * 2**30, 4 * 2**30, 5 * 2**30, 24 * 2**30,
            holders=(("x in train()", 2 * 2**30), ("Out[3]", 5 * 2**20)),
        ),
    ),
)  # fmt: skip

EMPTY = Inventory()

LONG = Inventory(
    tuple(
        Row(f"encoder.layers.{i}.{'self_attention_with_a_long_name' * 3}", "parameter", "cuda:0", shape=(i,), bytes=i)
        for i in range(300)
    ),
    {"cuda:0": 44_850},
)

VIEWS = {
    "standard": STANDARD,
    "several_lines": SEVERAL_LINES,
    "unsure": UNSURE,
    "without_culprit": WITHOUT_CULPRIT,
    "wide": WIDE,
    "hostile": HOSTILE,
    "workspace": WORKSPACE,
    "split": SPLIT,
    "empty": EMPTY,
}
