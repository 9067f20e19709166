"""The rules, by what they look at."""

from __future__ import annotations

from ipydevice.lint.rule import RULES
from ipydevice.lint.rules import datasets, fresh, modules, optimizers, processes, tensors

__all__ = ["RULES", "datasets", "fresh", "modules", "optimizers", "processes", "tensors"]
