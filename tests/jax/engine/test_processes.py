"""XLA's engine among settings, threads and processes of its user's: it changes none of them, and none of them its results."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import tidu_cli as tidu
from tests.tiers import few
from tests.waiting import LIMIT
from tidu_cli.adapters.jax import devices
from tidu_cli.adapters.jax.lowering import structured

pytestmark = pytest.mark.jax


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDU_CACHE_DIR", str(tmp_path))


def document():
    def logarithms(x):
        return {"logs": np.log(x), "sums": np.cumsum(x), "product": np.outer(x, x) @ x}

    return tidu.trace(logarithms, "f64[3]")


X = np.array([-1.0, 0.0, 1 / 3])

SETTINGS = {
    "x64": lambda: jax.enable_x64(True),
    "no x64": lambda: jax.enable_x64(False),
    "NaN": lambda: jax.debug_nans(True),
    "infinities": lambda: jax.debug_infs(True),
    "no compilation": lambda: jax.disable_jit(True),
    "no transfer": lambda: jax.transfer_guard("disallow_explicit"),
    "none to devices": lambda: jax.transfer_guard_host_to_device("disallow"),
    "dtypes": lambda: jax.numpy_dtype_promotion("strict"),
    "ranks": lambda: jax.numpy_rank_promotion("raise"),
    "digits": lambda: jax.default_matmul_precision("bfloat16"),
    "leaks": lambda: jax.checking_leaks(),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_users_are_kept_and_change_no_result(name):
    with np.errstate(all="ignore"):
        due = tidu.evaluate(document(), {"x": X}, engine="numpy")
    with SETTINGS[name]():
        before = dict(jax.config.values)
        made = tidu.compile(document(), engine="xla")
        results = [made({"x": X}), tidu.evaluate(document(), {"x": X}, engine="xla")]  # compiled, and from disk
        assert dict(jax.config.values) == before
    for result in results:
        for key, y in due.items():
            assert result[key].dtype == np.float64
            np.testing.assert_allclose(result[key], y, rtol=1e-15)


def test_a_run_within_a_trace_is_a_run():
    def traced(v):
        return v + tidu.evaluate(document(), {"x": X}, engine="xla")["sums"]

    np.testing.assert_allclose(jax.jit(traced)(np.ones(3, "f4")), 1 + np.cumsum(X), rtol=1e-6)


def test_threads_leave_the_process_as_it_was(monkeypatch):
    """The environment, loggers and filters of warnings, which are changed for a while, are of all threads."""
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    logger, interval = logging.getLogger("jax._src.xla_bridge"), sys.getswitchinterval()
    before = (dict(os.environ), logger.disabled, list(warnings.filters))
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: [devices.device_of("cpu") for _ in range(1000)], range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert (dict(os.environ), logger.disabled, list(warnings.filters)) == before


def test_threads_compile_and_run():
    documents = [tidu.trace(lambda x, k=k: np.sin(x) * k, "f64[500]") for k in range(4)]
    filters = list(warnings.filters)

    def run(n):
        x = np.random.default_rng(n).normal(size=500)
        given = x.copy()
        y = tidu.evaluate(documents[n % 4], {"x": x}, engine="xla")["y"]
        np.testing.assert_array_equal(x, given)
        np.testing.assert_allclose(y, np.sin(x) * (n % 4), rtol=1e-15, atol=1e-300)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(24)))
    assert list(warnings.filters) == filters


@pytest.mark.parametrize("n", [1, 10**5])
def test_subnormal_numbers_are_zeros(n):
    """XLA tells the processor so, and has no option against it: operands as well as results, as docs/howto/engines.md says."""
    halves = tidu.trace(lambda x: (x * 0.5, x, np.log(np.abs(x))), f"f64[{n}]")
    result, moved, log = tidu.evaluate(halves, {"x": np.full(n, -1e-310)}, engine="xla").values()
    assert (result == 0).all() and (log == -np.inf).all()
    np.testing.assert_array_equal(moved, -1e-310)  # no arithmetic


FORKED = """
import os, warnings
warnings.simplefilter("ignore")  # JAX warns of forks
import numpy as np, tidu_cli as tidu
document = tidu.trace(lambda x: np.sin(x) * 2, "f64[3]")
other = tidu.trace(lambda x: np.cos(x) @ x, "f64[3]")
made = tidu.compile(document, engine="xla")
made({"x": np.ones(3)})
child = os.fork()
if child == 0:
    try:
        for call in (lambda: made({"x": np.ones(3)}), lambda: tidu.evaluate(other, {"x": np.ones(3)}, engine="xla")):
            try:
                call()
            except tidu.TiduError as error:
                print(error, flush=True)
        print(tidu.evaluate(other, {"x": np.zeros(3)}, engine="numpy"), flush=True)
    finally:
        os._exit(0)
os.waitpid(child, 0)
made({"x": np.ones(3)})
"""


def test_forked_processes_are_told_rather_than_left_waiting():
    ran = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=LIMIT, check=True)
    *told, last = ran.stdout.splitlines()
    assert len(told) == 2
    assert all("forked" in line and "spawn" in line and "engine numpy" in line for line in told)
    assert "array(0.)" in last


@pytest.mark.parametrize(
    ("name", "value", "due"),
    [
        *[
            (
                "JAX_PLATFORMS",
                name,
                f"JAX starts on no device, by JAX_PLATFORMS='{name}': set it to cpu, or choose the engine numpy",
            )
            for name in few(("rocm", "nonsense"), 1)
        ],
        (
            "JAX_ENABLE_X64",
            "maybe",
            "invalid truth value 'maybe' for environment 'JAX_ENABLE_X64': change that, or choose the engine numpy",
        ),
    ],
)
def test_settings_that_jax_cannot_start_with_are_told_in_a_line(name, value, due):
    program = "import tidu_cli as tidu; tidu.evaluate(tidu.trace(lambda x: 2 * x, 'f64[]'), {'x': 1.0}, engine='xla')"
    environment = os.environ | {name: value}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert ran.returncode == 1 and ran.stderr.splitlines()[-1].endswith(due)


def test_an_interrupt_while_compiling_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(*_args):
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("not reached")

    before = (dict(jax.config.values), list(warnings.filters), jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision)
    with monkeypatch.context() as patched:
        patched.setattr(structured, "fields", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tidu.evaluate(document(), {"x": X}, engine="xla")
    after = (dict(jax.config.values), list(warnings.filters), jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision)
    assert after == before
    assert list(tmp_path.iterdir()) == []
    assert tidu.evaluate(document(), {"x": X}, engine="xla")["sums"].shape == (3,)  # no lock is held
