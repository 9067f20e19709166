"""The names of the checks agree with torchgen's own naming."""

from __future__ import annotations

import re
from pathlib import Path

import torch
import torchgen

from ipydevice.virtual.wrappers import declared, wrapper


def test_names_are_those_that_torchgen_generates() -> None:
    from torchgen.api import dispatcher, native
    from torchgen.model import FunctionSchema

    path = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    signatures = re.findall(r"^- func: (.*)$", path.read_text("utf-8"), re.M)
    seen = 0
    for signature in signatures:
        name = signature.partition("(")[0]
        entry = declared()[name]
        base, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, base, None)
        func = getattr(packet, overload or "default", None)
        if func is None or base.startswith("_scaled"):
            continue
        found = wrapper(func)
        if found.method is None:
            continue
        schema = FunctionSchema.parse(signature)
        # torchgen/dest/register_dispatch_key.py: wrapper_kernel_sig, and gen_one for structured kernels
        expected = (
            f"wrapper_CUDA_{native.name(schema)}"
            if entry.structured
            else f"wrapper_CUDA_{schema.name.overload_name}_{dispatcher.name(schema)}"
        )
        assert found.method == expected, name
        seen += 1
    assert seen > 500


def test_outputs_are_checked_first() -> None:
    found = wrapper(torch.ops.aten.mm.out)
    assert found.method == "wrapper_CUDA_mm_out_out"
    assert found.order == ("out", "self", "mat2")


def test_iterators_have_no_common_check() -> None:
    assert wrapper(torch.ops.aten.add.Tensor).method is None
