"""Drawing DOT text with Graphviz."""

from __future__ import annotations

import shutil
import subprocess

from tidu_cli.errors import TiduError


def draw(text: str, format_: str, otherwise: str = ", or use --format dot") -> bytes:
    """Lay out and draw DOT text as svg, png or pdf. Raises TiduError if Graphviz is missing or fails.

    `otherwise` ends the message of how to install it: what can be done without.
    """
    program = shutil.which("dot")
    if program is None:
        raise TiduError(
            f"{format_} needs Graphviz's program dot, which is not on the PATH; install it "
            f"(apt-get install graphviz, brew install graphviz, https://graphviz.org/download){otherwise}"
        )
    done = subprocess.run([program, f"-T{format_}"], input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        complaint = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise TiduError(f"Graphviz failed: {complaint or f'status {done.returncode}'}")
    return done.stdout
