"""The devices of JAX by the names that users give them, and JAX started without noise."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from tidu_cli.errors import EvaluationError, UnknownNameError, did_you_mean

PLATFORMS = ["cpu", "gpu", "cuda", "rocm", "tpu"]

_PREALLOCATE, _LEAST_LOGGED = "XLA_PYTHON_CLIENT_PREALLOCATE", "TF_CPP_MIN_LOG_LEVEL"

_STARTING = Lock()
"""One thread at a time: the environment and loggers are the whole process's."""


def device_of(name: str | None) -> Any:
    """The device of JAX of a name, as `cpu`, `gpu` or `gpu:1`; for None that which JAX would take.

    Raises UnknownNameError for what is no name of a device, and EvaluationError for one that is not there or in a forked process.
    """
    platform, number = named(name)
    require_own_process()
    with _STARTING, _quietly():
        try:
            import jax
        except ValueError as error:  # of a variable of the environment that is not understood
            raise EvaluationError(f"JAX does not start: {error}: change that, or choose the engine numpy") from None
        try:
            there = jax.devices()
        except (RuntimeError, AssertionError):  # the latter where what JAX_PLATFORMS names is known, and not here
            said = f"JAX_PLATFORMS='{jax.config.values['jax_platforms'] or ''}'"
            raise EvaluationError(f"JAX starts on no device, by {said}: set it to cpu, or choose the engine numpy") from None
        try:
            devices = there if name is None else jax.devices(platform)
        except RuntimeError:
            here = ", ".join(dict.fromkeys(d.platform for d in there))
            way = f"choose {here}, or install JAX for it, as by pip install 'jax[cuda12]'"
            raise EvaluationError(f"no device {name}: JAX finds only {here} here; {way}") from None
    if number >= len(devices):
        those = ", ".join(f"{platform}:{n}" for n in range(len(devices)))
        raise EvaluationError(f"no device {name}: there {'is' if len(devices) == 1 else 'are'} {those}")
    return devices[number]


def named(name: str | None) -> tuple[str, int]:
    """The platform and the number in the name of a device. Raises UnknownNameError for other names."""
    platform, colon, number = ("cpu" if name is None else name).partition(":")
    if platform not in PLATFORMS or (colon and not (number.isdecimal() and number.isascii())):
        raise UnknownNameError(f"no device '{name}'{did_you_mean(platform, PLATFORMS)} (devices: cpu, gpu, gpu:1, ...)")
    return platform, int(number or 0)


def require_own_process() -> None:
    """Raises EvaluationError in a process forked from one that has used JAX: it lacks JAX's threads, and would wait for ever."""
    if _home() != os.getpid():
        way = "have processes start by spawn, as by multiprocessing.get_context('spawn'), or choose the engine numpy"
        raise EvaluationError(f"the engine xla cannot run in a process forked from one that has used it: {way}")


@cache
def _home() -> int:
    """The process that used JAX first."""
    return os.getpid()


@contextmanager
def _quietly() -> Iterator[None]:
    """JAX says nothing while it looks for devices, and takes memory of a GPU as it needs it, unless the environment says else."""
    if "jax" not in sys.modules:
        os.environ.setdefault(_LEAST_LOGGED, "3")  # as JAX itself does, with more that is said
    preallocate, logger = os.environ.get(_PREALLOCATE), logging.getLogger("jax._src.xla_bridge")
    os.environ.setdefault(_PREALLOCATE, "false")
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled
        if preallocate is None:
            del os.environ[_PREALLOCATE]
