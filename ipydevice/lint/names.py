"""What the names in one document stand for: ``nn.Linear`` is torch.nn.Linear, and which classes are modules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property

from ipydevice.diagnose import bindings
from ipydevice.diagnose.infer import FACTORIES
from ipydevice.lint.defaults import Defaults
from ipydevice.lint.document import Document
from ipydevice.lint.numbers import has_no_dimension

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module", "torch.nn.modules.Module")
# Lightning's modules know their device and are moved by their trainer.
_SELF_MOVING = ("LightningModule", "PreTrainedModel", "LightningDataModule")
# What these make has no device, is for the host by nature, or follows its arguments.
_NOT_FRESH = frozenset(
    "complex as_tensor asarray scalar_tensor from_file normal "
    "Tensor FloatTensor LongTensor DoubleTensor IntTensor BoolTensor".split()  # these take no device=
)
FRESH = frozenset(f"torch.{name}" for name in FACTORIES - _NOT_FRESH)


class Names:
    """The imports, classes and scopes of a document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.source = document.source
        self.tree = self.source.tree

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]

    @cached_property
    def scopes(self) -> list[Scope]:
        found: list[Scope] = [self.tree]
        return found + [node for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]

    @cached_property
    def nodes_of(self) -> dict[Scope, list[ast.AST]]:
        """The nodes that each scope runs itself: not those of functions and classes inside."""
        return {scope: list(bindings.own_nodes(scope)) for scope in self.scopes}

    def in_scopes(self) -> Iterator[tuple[Scope, ast.AST]]:
        """Every node, with the scope that runs it."""
        for scope, nodes in self.nodes_of.items():
            for node in nodes:
                yield scope, node

    def in_methods(self, wanted: Callable[[str], bool]) -> Iterator[tuple[ast.ClassDef, ast.FunctionDef, ast.AST]]:
        """Every node that the modules' methods of the wanted names run, with its class and its method."""
        for cls in self.modules:
            for method in self.methods(cls):
                if wanted(method.name):
                    for node in self.nodes_of[method]:
                        yield cls, method, node

    def calls_of(self, *names: str) -> Iterator[ast.Call]:
        """The calls of what these dotted names import."""
        yield from (call for call in self.calls if self.full(call.func) in names)

    @cached_property
    def _imported(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return found

    def full(self, node: ast.AST | None) -> str:
        """The dotted name by its imports: "torch.nn.Linear"; "" for what is not imported."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._imported:
            return ""
        return ".".join([self._imported[node.id], *reversed(parts)])

    def called(self, node: ast.AST | None) -> str:
        """The dotted name of what a call calls; "" where it is no call of something imported."""
        return self.full(node.func) if isinstance(node, ast.Call) else ""

    # Modules -------------------------------------------------------------------------------

    @cached_property
    def modules(self) -> list[ast.ClassDef]:
        """Classes of the document that are nn.Modules, and move no tensors of their own accord."""
        found: list[ast.ClassDef] = []
        known: set[str] = set()
        for _ in range(4):  # a base may stand below
            for cls in self.classes:
                if cls in found or any(ast.unparse(base).rpartition(".")[2] in _SELF_MOVING for base in cls.bases):
                    continue
                if any(self.full(base) in _MODULES or getattr(base, "id", "") in known for base in cls.bases):
                    found.append(cls)
                    known.add(cls.name)
        return found

    def is_module_call(self, node: ast.AST | None) -> bool:
        """Whether a call makes a module: a class of torch.nn, or of this document."""
        if not isinstance(node, ast.Call):
            return False
        name = self.full(node.func)
        if name.startswith("torch.nn.") and name.count(".") == 2:
            last = name.rpartition(".")[2]
            return last[:1].isupper() and last not in _NO_MODULES
        return isinstance(node.func, ast.Name) and any(cls.name == node.func.id for cls in self.modules)

    def methods(self, cls: ast.ClassDef) -> Iterator[ast.FunctionDef]:
        yield from (item for item in cls.body if isinstance(item, ast.FunctionDef))

    # Values --------------------------------------------------------------------------------

    @cached_property
    def defaults(self) -> Defaults:
        return Defaults(self)

    def is_fresh(self, node: ast.AST | None) -> bool:
        """Whether a call makes a tensor on the host: no ``device=`` is given, and no other default is set around it.

        One of no dimension is none: it may meet those of any device.
        """
        if self.called(node) not in FRESH:
            return False
        assert isinstance(node, ast.Call)
        if any(keyword.arg in ("device", None) for keyword in node.keywords) or has_no_dimension(self, node):
            return False
        return not self.defaults.is_set and not self.defaults.around(node)

    def is_tensor(self, node: ast.expr, scope: Scope, depth: int = 0) -> bool:
        """Whether the code shows that the value is a tensor: made by torch, or handed out by a loader's loop."""
        if depth > 4:
            return False
        if isinstance(node, ast.Call):
            name = self.called(node)
            if name in FRESH or name.startswith("torch.nn.functional.") or name in _MAKES_TENSOR:
                return True
            if isinstance(node.func, ast.Attribute) and node.func.attr in _TENSOR_METHODS:
                return self.is_tensor(node.func.value, scope, depth + 1)
            return False
        if isinstance(node, ast.BinOp):
            return self.is_tensor(node.left, scope, depth + 1) or self.is_tensor(node.right, scope, depth + 1)
        if isinstance(node, ast.Name):
            # `x = x.to(device)` says nothing about the first x.
            found = [one for one in bindings.of_name(scope, node.id) if root_of(one.value) != node.id]
            return bool(found) and all(
                binding.how == "assignment"
                and binding.part is None
                and binding.value is not None
                and self.is_tensor(binding.value, scope, depth + 1)
                for binding in found
            )
        return False


def root_of(node: ast.expr | None) -> str:
    """``x`` in ``x.view(3).to(device)``."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


_NO_MODULES = frozenset("Parameter ParameterList ParameterDict Module Buffer UninitializedParameter".split())
_MAKES_TENSOR = frozenset(
    f"torch.{name}"
    for name in "cat stack matmul mm bmm einsum where exp log sqrt sum mean softmax sigmoid relu tanh abs clamp "
    "from_numpy as_tensor zeros_like ones_like randn_like rand_like empty_like full_like".split()
)
_TENSOR_METHODS = frozenset(
    "to cuda cpu float long int half double bool clone detach view reshape unsqueeze squeeze permute transpose "
    "contiguous expand repeat flatten requires_grad_ t".split()
)
