#!/bin/sh
# Reverse over forward: the gradient by x and y of the derivative of (1 - x)² + 100·(y - x²)² along (1, -2), at (2, 1).
# The Hessian is symmetric, so x@-2 = 6002 and y@-2 = -1200, as forward over reverse gives them (for.sh).
set -eu
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}

"$tidu" linearize rosenbrock.json --wrt x --wrt y |
    "$tidu" linearize --wrt x --wrt y |
    "$tidu" transpose |
    "$tidu" materialize |
    "$tidu" eval --set x=2 --set y=1 --set x@1=1 --set y@1=-2 --set f@1@-2=1
