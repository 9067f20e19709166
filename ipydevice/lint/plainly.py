"""What is plainly a tensor: a loader hands it out, an annotation says so, or it is used as only a tensor can be."""

from __future__ import annotations

import ast
import re

from ipydevice.diagnose import bindings
from ipydevice.diagnose.bindings import Binding
from ipydevice.lint.names import Names, Scope, root_of

# torch.Tensor, LongTensor, Optional[Tensor], Float[Tensor, "b c"]; a list of them has no .to().
_ANNOTATION = re.compile(r"^'?(?:Optional\[|[A-Z]\w*\[)?(?:\w+\.)*(?:[A-Z][a-z]+)?Tensor\b")
_LOADER = re.compile(r"(^|_)(data_?)?loader(_|$|\b)|(^|_)dl(_|$|\b)|\bDataLoader\(")
# Of a tensor's alone: modules, PyTorch Geometric's Data and transformers' BatchEncoding move in place, and have none.
_OF_TENSORS = frozenset(
    "shape ndim numel view reshape unsqueeze squeeze permute transpose flatten detach backward item tolist argmax "
    "argmin softmax log_softmax sigmoid mean sum matmul long is_cuda".split()
)


def is_tensor(names: Names, scope: Scope, node: ast.expr) -> bool:
    """A parameter or loop variable of which every binding and a use, or the annotation, shows that it is a tensor."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_batch(scope, node.value)
    if not isinstance(node, ast.Name):
        return False
    # `x = x.to(device)` says nothing about the first x.
    found = [one for one in bindings.of_name(scope, node.id) if root_of(one.value) != node.id]
    if not found:
        return _is_parameter(scope, node.id) and (_is_annotated(scope, node.id) or _is_used_as_one(names, scope, node))
    if all(_is_part_of_batch(binding) for binding in found):
        return True
    return all(binding.how == "loop" for binding in found) and _is_used_as_one(names, scope, node)


def may_be_bound(scope: Scope, node: ast.expr) -> bool:
    """False for what a loop takes out of something that keeps it: bound to the name, the copy reaches nobody else."""
    found = bindings.of_name(scope, node.id) if isinstance(node, ast.Name) else []
    return all(
        binding.how != "loop" or binding.value is None or _LOADER.search(ast.unparse(binding.value)) is not None
        for binding in found
    )


def _is_parameter(scope: Scope, name: str) -> bool:
    return not isinstance(scope, ast.Module) and name in bindings.parameters(scope)


def _is_annotated(scope: Scope, name: str) -> bool:
    if isinstance(scope, ast.Module):
        return False
    given = scope.args
    return any(
        one.arg == name and one.annotation is not None and _ANNOTATION.match(ast.unparse(one.annotation)) is not None
        for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)
    )


def _is_part_of_batch(binding: Binding) -> bool:
    """``y`` in ``for x, y in loader``, and in ``for n, (x, y) in enumerate(loader)``."""
    if binding.how != "loop" or binding.part is None or binding.value is None:
        return False
    target = getattr(binding.node, "target", None)
    whole = _is_counted(binding) and not any(isinstance(part, ast.Tuple) for part in getattr(target, "elts", ()))
    return not whole and _LOADER.search(ast.unparse(binding.value)) is not None


def _is_batch(scope: Scope, node: ast.expr) -> bool:
    """``batch`` in ``for batch in loader``, and in ``for n, batch in enumerate(loader)``."""
    found = bindings.of_name(scope, node.id) if isinstance(node, ast.Name) else []
    return bool(found) and all(
        binding.how == "loop"
        and binding.value is not None
        and _LOADER.search(ast.unparse(binding.value)) is not None
        and (binding.part is None or (_is_counted(binding) and binding.part == 1))
        for binding in found
    )


def _is_counted(binding: Binding) -> bool:
    return binding.value is not None and "enumerate(" in ast.unparse(binding.value)


def _is_used_as_one(names: Names, scope: Scope, node: ast.Name) -> bool:
    return any(
        _shows_tensor(names, use)
        for use in ast.walk(scope)
        if isinstance(use, ast.Name) and use.id == node.id and isinstance(use.ctx, ast.Load)
    )


def _shows_tensor(names: Names, use: ast.Name) -> bool:
    match names.source.parent(use):
        case ast.Attribute(attr=name):
            return name in _OF_TENSORS
        case ast.BinOp():
            return True
        case ast.Call(args=args) as call:
            called = names.called(call)
            return use in args and (called.startswith("torch.nn.functional.") or called in _OF_TORCH)
    return False


_OF_TORCH = frozenset(
    f"torch.{name}"
    for name in "matmul mm bmm exp log sqrt sum mean softmax sigmoid relu tanh abs clamp argmax where topk "
    "zeros_like ones_like randn_like rand_like empty_like full_like".split()
)
