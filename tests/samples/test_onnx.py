"""The potential of samples/onnx: the forces that its gradient file gives are what differences of its energy are."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tidu_cli as tidu
from tests.docs.blocks import ROOT

ATOMS, STEP = 8, 1e-4
POSITIONS = np.random.default_rng(1).uniform(0, 2, (ATOMS, 3)).astype("f4")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("potential") / "potential.onnx"
    onnx.save(runpy.run_path(str(ROOT / "samples" / "onnx" / "potential.py"))["model"](), file)
    return file


@pytest.fixture(scope="module")
def forces(model: Path) -> Any:
    """From positions to energy and forces, by the gradient file."""
    document = tidu.load_onnx(model, dims={"atoms": ATOMS}).document
    file = model.with_name("forces.onnx")
    seed = {"energy@-1": np.float32(-1)}
    tidu.save(tidu.materialize(tidu.vjp(document, ["positions"], value=True), set=seed), file)
    session = onnxruntime.InferenceSession(file)
    return lambda positions: session.run(["energy", "positions@-1"], {"positions": positions})


def test_forces_are_differences_of_the_energy(model: Path, forces: Any) -> None:
    document = tidu.load_onnx(model, dims={"atoms": ATOMS}, cast="f64").document

    def energy(positions: Any) -> float:
        return float(tidu.evaluate(document, positions=positions)["energy"])

    expected = np.empty((ATOMS, 3))
    for at in np.ndindex(expected.shape):
        moved = np.zeros((ATOMS, 3))
        moved[at] = STEP
        expected[at] = (energy(POSITIONS - moved) - energy(POSITIONS + moved)) / (2 * STEP)
    computed_energy, computed_forces = forces(POSITIONS)
    assert computed_energy == pytest.approx(energy(POSITIONS), rel=1e-5)
    np.testing.assert_allclose(computed_forces, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_forces_turn_with_the_atoms_and_add_up_to_nothing(forces: Any) -> None:
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0].astype("f4")
    _, computed_forces = forces(POSITIONS)
    _, turned = forces(POSITIONS @ turn)
    size = np.abs(computed_forces).max()
    np.testing.assert_allclose(turned, computed_forces @ turn, atol=1e-5 * size)
    np.testing.assert_allclose(computed_forces.sum(0), 0, atol=1e-5 * size)
