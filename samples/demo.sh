#!/bin/sh
# What `make demo` runs: a derivative, the pipeline behind it, a model fitted to real data by its gradient file, and a picture.
# Stops with an error if a result is wrong. Needs tidu and its Python on the PATH.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# show COMMAND EXPECTED: prints the command, runs it, prints its output, and compares the two.
show() {
    printf '$ %s\n' "$1"
    output=$(eval "$1")
    printf '%s\n\n' "$output"
    if [ "$output" != "$2" ]; then
        printf 'demo: error: expected %s\n' "$2" >&2
        exit 1
    fi
}

echo '== The gradient of x² sin y at x = 3, y = 0. x@-1 is the cotangent of x: the derivative by x'
echo
show "tidu grad 'x**2 * sin(y)' --set x=3 --set y=0 --wrt x --wrt y" '{"x@-1": 0.0, "y@-1": 9.0}'

echo '== The steps behind it, on the file of f(x) = (x + x)·x = 2x² at x = 3: reverse mode, then forward over reverse'
echo
show 'tidu linearize samples/f.json --wrt x | tidu transpose | tidu eval --set x=3 --set y@-1=1' '{"x@-1": 12.0}'
show 'tidu linearize samples/f.json --wrt x | tidu transpose | tidu linearize --wrt x | tidu materialize |
    tidu eval --set x=3 --set y@-1=1 --set x@2=1' '{"x@-1@2": 4.0}'

echo '== Real data: a logistic regression of 569 tumours by 30 measurements, fitted by the gradient of its loss file'
echo
echo '$ tidu grad samples/logistic_regression/loss.json --wrt w -o gradient.json'
tidu grad samples/logistic_regression/loss.json --wrt w -o "$scratch/gradient.json"
echo '$ python samples/logistic_regression/fit.py gradient.json'
python samples/logistic_regression/fit.py "$scratch/gradient.json"
echo

echo '== The same in one command, by Hessian-vector products'
echo
data=samples/logistic_regression/data.npz
tidu eval 'w = 0 * X[0]' --inputs $data --quiet -o "$scratch/start.json"
echo '$ tidu minimize samples/logistic_regression/loss.json --wrt w --inputs data.npz --inputs start.json --method Newton-CG -o fitted.json'
tidu minimize samples/logistic_regression/loss.json --wrt w --inputs $data --inputs "$scratch/start.json" \
    --method Newton-CG -o "$scratch/fitted.json" 2>&1
show "tidu eval 'right = sum(X @ w * t > 0)' --inputs $data --inputs $scratch/fitted.json --quiet" '{"right": 562}'

mkdir -p build
tidu linearize samples/f.json --wrt x | tidu transpose | tidu view --set x=3 --set y@-1=1 -o build/demo.html
echo '== build/demo.html is a page with the picture of f and its reverse mode, step by step'
