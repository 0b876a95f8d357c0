"""Runs the README's commands with the tidu of another environment: `python -m tools.first_commands FOLDER BIN`.

FOLDER holds README.md and samples/, BIN the `tidu` to try. Commands that need a program which is missing here are left out. Fails
with the first command that prints something else than the README shows.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.docs.blocks import agrees, blocks, run
from tests.programs import called_by, missing


def main(folder: Path, bin_: Path) -> None:
    """Run them, and say how many they were."""
    environment = {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    count = 0
    for block in blocks((folder / "README.md").read_text()):
        if block.title:
            (folder / block.title).write_text("\n".join(block.lines) + "\n")
        if block.language != "console" or block.not_run:
            continue
        for step in block.steps():
            if missing(*called_by(step.command)):
                continue
            status, printed = run(step.command, folder, environment)
            if status or not agrees(step.output, printed):
                sys.exit(f"release: error: $ {step.command}\nhas status {status} and prints\n" + "\n".join(printed))
            count += 1
    print(f"{count} commands of the README print what it shows.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
