"""Compares derivatives that tidu has written with those that a data file expects: `python compare.py RESULT.npz DATA.npz`.

`alphas@-1` is compared with `expect.grad.alphas`, `y/cam` with `expect.jac.cam`, `y` with `expect.objective` or `expect.reproj`.
Prints the error of each array, relative to the array's norm, and has status 1 if one is greater than 1e-9.
"""

import sys

import numpy as np

TOLERANCE = 1e-9


def main(result_file, data_file):
    """Print a line per array, and return the exit status."""
    with np.load(data_file) as data, np.load(result_file) as result:
        expected = {derivative_key(key): data[key] for key in data.files if key.startswith("expect.")}
        errors = {key: np.linalg.norm(result[key] - expected[key]) / np.linalg.norm(expected[key]) for key in result.files}
    for key, error in errors.items():
        print(f"{key}: {'as expected' if error <= TOLERANCE else f'wrong by {error:.1e}'}")
    return int(not all(error <= TOLERANCE for error in errors.values()))


def derivative_key(expected_key):
    """What tidu calls the value: expect.grad.x is the cotangent x@-1, expect.jac.x the block y/x of the Jacobian."""
    _, what, *name = expected_key.split(".")
    return {"grad": "{}@-1", "jac": "y/{}"}.get(what, "y").format(*name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python compare.py RESULT.npz DATA.npz")
    sys.exit(main(*sys.argv[1:]))
