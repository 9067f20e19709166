"""What goes wrong with the files that a person gives."""

from __future__ import annotations


class InputError(ValueError):
    """Wrong input: its text is one line that says what was given, what was expected and what to do."""
