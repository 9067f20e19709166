"""Causes that the message, or the place where it was raised, tells alone."""

from __future__ import annotations

import ast

from ipydevice.diagnose.causes.facts import Facts
from ipydevice.diagnose.causes.passed import default_device
from ipydevice.diagnose.weigh import HOST


def by_message(facts: Facts) -> str | None:
    mismatch = facts.finding.mismatch
    if "DataLoader" in (mismatch.wrapped_in or "") or "fork" in mismatch.text:
        return "cuda_in_dataset"
    if facts.device == "meta":
        return "meta_not_materialized"
    if mismatch.kind == "availability":
        return "no_accelerator"
    wrapped = mismatch.wrapped_in or ""
    if "replica" in wrapped:
        return "dp_replica_state"
    if mismatch.kind == "meta":
        return "meta_not_materialized"
    if mismatch.family == "numpy":
        return "to_numpy"
    if facts.tracer.in_loader and facts.device != HOST and facts.finding.target == HOST:
        return default_device(facts) or "cuda_in_dataset"
    if (
        facts.stray is not None
        and facts.stray.via == ""
        and any(step.how == "item" for step in facts.finding.chain[:1])
        and _in_dataset(facts)
    ):
        return "cuda_in_dataset"
    if mismatch.family == "generator" and mismatch.host_required is None:  # a random state belongs on the host
        return default_device(facts) or "generator_device"
    if facts.stray is not None and facts.stray.kind == "loader":
        return "cuda_in_dataset"
    if mismatch.host_required is not None:
        return "must_be_cpu"
    return None


def _in_dataset(facts: Facts) -> bool:
    """The stray is made in the class of a Dataset, or in a collate function."""
    site = facts.stray.site
    cls = site.source.class_of(site.node)
    if cls is not None:
        return any("Dataset" in ast.unparse(base) for base in cls.bases) or any(
            isinstance(item, ast.FunctionDef) and item.name == "__getitem__" for item in cls.body
        )
    function = site.source.function(site.node)
    return "collate" in getattr(function, "name", "")
