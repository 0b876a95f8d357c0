"""Drawing DOT text with Graphviz."""

from __future__ import annotations

import shutil
import subprocess

from tidu_cli.errors import TiduError


def draw(text: str, format_: str) -> bytes:
    """Lay out and draw DOT text as svg, png or pdf. Raises TiduError if Graphviz is missing or fails."""
    program = shutil.which("dot")
    if program is None:
        raise TiduError(
            f"{format_} needs Graphviz's program dot, which is not on the PATH; install it "
            "(apt-get install graphviz, brew install graphviz, https://graphviz.org/download), or use --format dot"
        )
    done = subprocess.run([program, f"-T{format_}"], input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        complaint = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise TiduError(f"Graphviz failed: {complaint or f'status {done.returncode}'}")
    return done.stdout
