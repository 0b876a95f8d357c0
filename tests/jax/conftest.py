"""JAX for the tests that need it. Others of this folder run without."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("jax") is None:
    collect_ignore = [f"functions/{name}.py" for name in ("test_control_flow", "test_jaxprs", "test_special")]  # which import it


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without those that need it JAX is not imported: other tests fork, which it forbids."""
    needs = collection_path.name not in ("jax", "__init__.py", "test_page.py")
    return True if needs and "not jax" in config.option.markexpr else None


@pytest.fixture(scope="session")
def jax() -> Any:
    """JAX in double precision on the CPU; here and not at the tops of files, so that tests are collected without it."""
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    module.config.update("jax_platforms", "cpu")
    return module
