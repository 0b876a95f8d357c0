#!/bin/sh
# Vector-Jacobian product: the gradients of (1 - x)² + 100·(y - x²)² by x and by y, in one reverse sweep, at (2, 1).
# They are -2(1 - x) - 400x(y - x²) and 200(y - x²), so it prints x@-1 = 2402 and y@-1 = -600.
set -eu
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}

"$tidu" linearize rosenbrock.json --wrt x --wrt y |
    "$tidu" transpose |
    "$tidu" materialize |
    "$tidu" eval --set x=2 --set y=1 --set f@-1=1
