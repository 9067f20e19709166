"""Recognise every device error, and nothing else."""

from ipydevice.messages.catalogue import Entry, catalogue
from ipydevice.messages.mismatch import Mismatch, TextFrame
from ipydevice.messages.recognise import find, recognise

__all__ = ["Entry", "Mismatch", "TextFrame", "catalogue", "find", "recognise"]
