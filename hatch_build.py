"""The man pages, written when a wheel is built: from the commands themselves, into share/man/man1."""

from __future__ import annotations

import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):
    """Hatchling calls it before and after it packs a wheel. Editable installations have none, as their commands change."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages, and say where they go."""
        self.folder = TemporaryDirectory()
        if version != "editable":
            subprocess.run([sys.executable, "-m", "tools.manual", self.folder.name], cwd=self.root, check=True)
            build_data["shared_data"][self.folder.name] = "share/man/man1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written."""
        self.folder.cleanup()
