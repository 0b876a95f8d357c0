"""JAX for the tests that need it. Others of this folder run without."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("jax") is None:
    collect_ignore = ["test_control_flow.py", "test_jaxprs.py", "test_special.py"]  # which import it


@pytest.fixture(scope="session")
def jax() -> Any:
    """JAX in double precision on the CPU; here and not at the tops of files, so that tests are collected without it."""
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    module.config.update("jax_platforms", "cpu")
    return module
