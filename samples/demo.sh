#!/bin/sh
# What `make demo` runs: derivatives of a small graph, then a logistic regression fitted on real data by nothing but derived graph
# files. Stops with an error if a result is wrong. Needs tidu and its Python on the PATH, and scikit-learn to check against.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# show COMMAND EXPECTED: prints the command, runs it, prints what it printed, and compares.
show() {
    printf '$ %s\n' "$1"
    found=$(eval "$1")
    printf '%s\n\n' "$found"
    if [ "$found" != "$2" ]; then
        printf 'demo: error: expected %s\n' "$2" >&2
        exit 1
    fi
}

echo '== f(x) = (x + x)·x = 2x², its derivative by reverse mode, and its second derivative by forward over reverse, at x = 3'
echo
show 'tidu eval samples/f.json --set x=3' '{"y": 18.0}'
show 'tidu linearize samples/f.json --wrt x | tidu transpose |
    tidu eval --set x=3 --set y@-1=1' '{"x@-1": 12.0}'
show 'tidu linearize samples/f.json --wrt x | tidu transpose | tidu linearize --wrt x | tidu materialize |
    tidu eval --set x=3 --set y@-1=1 --set x@2=1' '{"x@-1@2": 4.0}'

echo '== Logistic regression: 569 tumours, 30 measurements, Newton-CG on a gradient and a Hessian-vector product in files (about 20 s)'
cd samples/logistic_regression
TIDU=tidu ./gradient.sh "$scratch/gradient.json"
TIDU=tidu ./hessian_vector.sh "$scratch/hessian_vector.json"
python newton_cg.py "$scratch/gradient.json" "$scratch/hessian_vector.json" >"$scratch/optimum.json"
tidu eval loss.json --inputs data.npz --inputs "$scratch/optimum.json"

python - "$scratch/optimum.json" <<'CHECK'
import json
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

w = np.array(json.load(open(sys.argv[1]))["w"])
with np.load("data.npz") as data:
    X, t = data["X"], data["t"]
reference = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X[:, 1:], t)
difference = np.abs(w - [*reference.intercept_, *reference.coef_[0]]).max()
print(f"{np.count_nonzero((X @ w > 0) == (t > 0))} of {len(t)} are told apart; ", end="")
print(f"no weight differs from scikit-learn's by more than {difference:.0e}")
sys.exit("demo: error: the weights are not scikit-learn's" if difference > 1e-8 else 0)
CHECK
