"""Tell what checkpoint files hold, without loading them, and what torch.load would do with them on this machine.

Nothing in a file is run, so a hostile one is listed safely. Reads files of torch.save, TorchScript, safetensors and
the index of a sharded checkpoint.

Examples:
  ipydevice checkpoint model.pt
  ipydevice checkpoint model.safetensors.index.json optimizer.pt
"""

from __future__ import annotations

import argparse

from ipydevice import checkpoint


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a checkpoint: .pt, .pth, .bin, .safetensors, ...")


def run(chosen: argparse.Namespace) -> int:
    """0 when every file was listed, 2 when one could not be read."""
    return checkpoint.main(chosen.files)
