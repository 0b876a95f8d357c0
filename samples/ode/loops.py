"""The orbit of kepler.py by loops that are nodes: a scan of steps of one length, and a while_loop that chooses their lengths."""

import numpy as np
from kepler import PERIOD, motion, step

import tidu_cli as tidu


def orbit(state, duration=PERIOD, steps=1000):
    """The state [4] after `duration`, by as many steps."""
    return tidu.fori_loop(0, steps, lambda _, state: step(state, duration / steps), state)


def adaptive_orbit(state, duration=PERIOD, tolerance=1e-7):
    """The state [4] after `duration`, by steps of the method of Bogacki and Shampine (1989), each of an error below `tolerance`."""

    def advance(carry):
        h = np.minimum(carry["h"], duration - carry["time"])
        after, error = embedded_step(carry["state"], h)
        accepted = error <= tolerance
        # The error is of third order in h. Where it is next to nothing its power would have no derivative.
        factor = 0.9 * np.maximum(error / tolerance, 1e-2) ** (-1 / 3)
        return {
            "time": np.where(accepted, carry["time"] + h, carry["time"]),
            "h": h * np.maximum(factor, 0.2),
            "state": np.where(accepted, after, carry["state"]),
            "steps": carry["steps"] + 1,
        }

    def is_on_its_way(carry):
        return carry["time"] < duration * (1 - 1e-12)

    first = {"time": 0.0, "h": duration / 100, "state": state, "steps": 0}
    return tidu.while_loop(is_on_its_way, advance, first)["state"]


def embedded_step(state, h):
    """The state after a time h by a method of third order, and how far one of second order is from it."""
    k1 = motion(state)
    k2 = motion(state + h / 2 * k1)
    k3 = motion(state + 3 * h / 4 * k2)
    after = state + h / 9 * (2 * k1 + 3 * k2 + 4 * k3)
    k4 = motion(after)
    return after, h * np.max(np.abs(-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8))
