"""The orbit of a planet about a fixed sun, by the classical Runge-Kutta method of fourth order with steps of constant length."""

import math

import numpy as np

PERIOD = 2 * math.pi
"""Of every orbit whose semi-major axis is 1, with the gravitational parameter 1."""


def orbit(state, duration=PERIOD, steps=1000):
    """The state [4] after `duration`: position (2), then velocity (2)."""
    for _ in range(steps):
        state = step(state, duration / steps)
    return state


def step(state, h):
    """The state after a time h."""
    k1 = motion(state)
    k2 = motion(state + h / 2 * k1)
    k3 = motion(state + h / 2 * k2)
    k4 = motion(state + h * k3)
    return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def distance(state):
    """How far from the sun the planet is after one period."""
    position = orbit(state)[:2]
    return np.sqrt(position @ position)


def motion(state):
    """The derivative of the state by time: velocity, and Newton's acceleration -q/|q|³."""
    position, velocity = state[:2], state[2:]
    return np.concatenate([velocity, -position / (position @ position) ** 1.5])


def energy(state):
    """Energy per mass, which an orbit keeps."""
    position, velocity = state[:2], state[2:]
    return velocity @ velocity / 2 - 1 / np.sqrt(position @ position)
