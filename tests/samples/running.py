"""Running what the READMEs of samples say, as a reader would type it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from tests import forking
from tests.docs.blocks import ROOT, agrees, blocks, run

SAMPLES = ROOT / "samples"
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def tidu(command, folder):
    """What a command line prints, run in a folder that sees samples/."""
    if not (folder / "samples").exists():
        (folder / "samples").symlink_to(SAMPLES)
    status, printed = run(command, folder, os.environ | {"PATH": forking.path()})
    assert status == 0, f"{command}\n" + "\n".join(printed)
    return printed


def follow(sample, folder):
    """Run the README of a sample in a folder, in which blocks with a title are files, and hold what is printed to what it shows."""
    text = (SAMPLES / sample / "README.md").read_text()
    for block in blocks(text):
        if block.title:
            (folder / block.title).write_text("\n".join(block.lines) + "\n")
            continue
        for step in block.steps() if block.language == "console" else ():
            printed = tidu(step.command, folder)
            assert agrees(step.output, printed), f"{step.command}\nprints\n" + "\n".join(printed)


def arrays(path):
    """The arrays of an npz file."""
    with np.load(path) as archive:
        return dict(archive)


def norm_error(value, expected):
    """|value - expected| relative to |expected|."""
    assert np.shape(value) == np.shape(expected)
    return np.linalg.norm(value - expected) / np.linalg.norm(expected)
