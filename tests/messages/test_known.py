"""Every known text: its id, its fields, and what its order means."""

from __future__ import annotations

import json
import os
import re

import pytest

from ipydevice.messages import Mismatch, catalogue, recognise
from messages import texts

GOLDEN = texts.HERE / "known.json"
KNOWN = texts.rows("known.tsv")
REGENERATE = os.environ.get("IPYDEVICE_REGEN") == "1"


def said(row: dict[str, str]) -> Mismatch | None:
    return recognise(texts.exception(row["exception"], row["text"]))


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row["id"])
def test_text_is_recognised_by_its_template(row: dict[str, str]) -> None:
    mismatch = said(row)
    assert mismatch is not None
    assert (mismatch.id, mismatch.confidence) == (row["id"], "exact")
    assert mismatch.text == row["text"]
    assert mismatch.exception_type == row["exception"]


def test_fields_of_all_known_texts() -> None:
    found = [{"text": row["text"], **texts.fields(mismatch)} for row in KNOWN if (mismatch := said(row))]
    if REGENERATE:
        GOLDEN.write_text("[\n" + ",\n".join(json.dumps(item, sort_keys=True) for item in found) + "\n]\n")
    assert found == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row["id"])
def test_white_space_quotes_and_surroundings_do_not_matter(row: dict[str, str]) -> None:
    plain = said(row)
    assert plain is not None
    text = row["text"].replace(" ", "\n  ", 3)
    wrapped = recognise(texts.exception(row["exception"], text))
    assert wrapped is not None
    assert wrapped.id == plain.id
    assert wrapped.devices == plain.devices


def test_every_template_has_a_known_text_or_is_of_the_same_id() -> None:
    assert {row["id"] for row in KNOWN} <= {entry.id for entry in catalogue()}


def test_catalogue_is_clean() -> None:
    for entry in catalogue():
        assert re.fullmatch(r"(?:PT|LB)\d{3}b?", entry.id)
        assert entry.family
        assert entry.kind in ("placement", "availability", "meta")
        assert entry.meaning, entry.id
        assert len(entry.meaning) <= 110, entry.id
        assert len(entry.anchor) >= 3, entry.id


def test_families_are_told_apart() -> None:
    assert {entry.kind for entry in catalogue() if entry.family == "availability"} == {"availability"}
    assert all(entry.library for entry in catalogue() if entry.family.startswith("lib:"))


def only(text: str) -> Mismatch:
    mismatch = recognise(RuntimeError(text))
    assert mismatch is not None
    return mismatch


class TestCommonCheck:
    """The two wordings say the same with the devices the other way round."""

    NEW = (
        "Expected all tensors to be on the same device, but got {} is on {}, different from other tensors on {} "
        "(when checking argument in method wrapper_{})"
    )
    OLD = (
        "Expected all tensors to be on the same device, but found at least two devices, {} and {}! "
        "(when checking argument for argument {} in method wrapper_{})"
    )

    def test_new_wording_names_the_argument_first(self) -> None:
        new = only(self.NEW.format("mat1", "cpu", "cuda:0", "CUDA_addmm"))
        assert new.devices == ("cpu", "cuda:0")
        assert (new.argument, new.argument_device, new.reference_device) == ("mat1", "cpu", "cuda:0")

    def test_old_wording_names_the_reference_first(self) -> None:
        old = only(self.OLD.format("cuda:0", "cpu", "mat1", "CUDA_addmm"))
        assert old.devices == ("cuda:0", "cpu")
        assert (old.argument, old.argument_device, old.reference_device) == ("mat1", "cpu", "cuda:0")

    def test_reference_is_the_first_argument_checked(self) -> None:
        mismatch = only(self.NEW.format("mat1", "cuda:0", "cpu", "CUDA_addmm"))
        assert mismatch.arguments == ("self", "mat1", "mat2")
        assert mismatch.roles == {"mat1": "cuda:0", "self": "cpu"}  # the bias is on the CPU

    @pytest.mark.parametrize(
        ("method", "op", "argument", "first"),
        [
            ("CUDA_addmm", "addmm", "mat1", "self"),
            ("addmm", "addmm", "mat1", "self"),  # 1.10 to 1.13
            ("CUDA__index_select", "index_select", "index", "self"),
            ("index_select", "index_select", "index", "self"),  # 1.9
            ("NPU__index_select", "index_select", "index", "self"),
            ("CUDA_scatter__src", "scatter_", "src", "self"),
            ("CUDA_mm_out_out", "mm", "self", "out"),
            ("CUDA_nll_loss_forward", "nll_loss_forward", "target", "self"),
            ("CUDA__native_batch_norm", "native_batch_norm", "weight", "input"),
            ("CUDA_Tensor_bucketize", "bucketize", "boundaries", "self"),
            ("Tensor_bucketize", "bucketize", "boundaries", "self"),
            ("CUDA___cdist_backward", "_cdist_backward", "grad", "grad"),  # up to 2.13
            ("CUDA___cdist_backward", "_cdist_backward", "grad_output", "grad_output"),  # 2.14
            ("SparseCsrCUDA__addmm", "addmm", "mat2", "self"),
            ("XPU___slow_conv2d_forward", "_slow_conv2d_forward", "weight", "self"),
        ],
    )
    def test_method_gives_op_and_arguments(self, method: str, op: str, argument: str, first: str) -> None:
        for text in (
            self.NEW.format(argument, "cpu", "cuda:0", method),
            self.OLD.format("cuda:0", "cpu", argument, method),
        ):
            mismatch = only(text)
            assert mismatch.op == op
            assert mismatch.arguments[0] == first
            assert argument in mismatch.arguments

    def test_unknown_method_still_gives_an_op(self) -> None:
        mismatch = only(self.NEW.format("q", "cpu", "cuda:0", "CUDA__brand_new_op"))
        assert (mismatch.op, mismatch.arguments) == ("brand_new_op", ())


def test_elementwise_order_says_nothing() -> None:
    mismatch = only("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")
    assert mismatch.family == "tensoriterator"
    assert mismatch.roles == {}
    assert mismatch.argument_device is mismatch.reference_device is None
    assert mismatch.order.startswith("none")
    assert {"the operation", "which of its arguments", "the variable"} <= set(mismatch.unknown)


def test_traced_text_is_told_by_its_class() -> None:
    text = "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!"
    traced = recognise(texts.exception("FakeTensorDeviceMismatchError", text))
    assert traced is not None
    assert (traced.id, traced.family) == ("PT014", "faketensor")
    assert only(text).id == "PT014"  # eager code never names the CPU first
    assert only(text.replace("cpu and cuda:0", "cuda:0 and cpu")).id == "PT010"


def test_gradient_is_the_one_named_second_but_assigned_first() -> None:
    returned = only(
        "Function MulBackward0 returned an invalid gradient at index 0 - expected device cuda:0 but got cpu"
    )
    assert (returned.argument, returned.argument_device, returned.reference_device) == ("grad", "cpu", "cuda:0")
    assigned = only(
        "attempting to assign a gradient with device type 'cpu' to a tensor with device type 'cuda'. "
        "Please ensure that the gradient and the tensor are on the same device"
    )
    assert (assigned.argument, assigned.argument_device, assigned.reference_device) == ("grad", "cpu", "cuda")


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("index '\x01' to a tensor located on device with index '\x02'", ("cuda:1", "cuda:2")),
        ("index '\x01' to a tensor located on device with index '", ("cuda:1", "cuda:0")),  # NUL cuts the text
        ("index '", ("cuda:0",)),
        ("index '3' to a tensor located on device with index '0'", ("cuda:3", "cuda:0")),
        ("index '\t' to a tensor located on device with index '\n'", ("cuda:9", "cuda:10")),
    ],
)
def test_gradient_indices_are_raw_characters(text: str, devices: tuple[str, ...]) -> None:
    mismatch = only(f"attempting to assign a gradient located on device with {text}")
    assert mismatch.id == "PT203"
    assert mismatch.devices == devices


def test_rule_for_the_host() -> None:
    lengths = only("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor")
    assert (lengths.host_required, lengths.argument, lengths.argument_device) == ("lengths", "lengths", "cuda:0")
    assert lengths.reference_device == "cpu"
    array = only(
        "can't convert mps:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )
    assert (array.host_required, array.argument, array.argument_device) == ("numpy", None, "mps:0")


def test_index_text_names_the_indexed_tensor() -> None:
    mismatch = only("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    assert mismatch.argument == "indices"
    assert mismatch.argument_device is None
    assert mismatch.roles == {"self": "cpu"}


def test_roles_that_the_text_names() -> None:
    rnn = only(
        "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu"
    )
    assert rnn.roles == {"input": "cuda:0", "hidden": "cpu"}
    conv = only("Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same")
    assert conv.roles == {"input": "cpu", "weight": "cuda"}
    assert "the number of the accelerator" in conv.unknown
    two = only(
        "Expected tensor for argument #1 'input' to have the same device as tensor for argument #2 'weight'; "
        "but device 1 does not equal 0 (while checking arguments for cudnn_convolution)"
    )
    assert two.roles == {"input": "cuda:1", "weight": "cuda:0"}
