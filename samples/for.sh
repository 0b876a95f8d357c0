#!/bin/sh
# Forward over reverse: the Hessian of (1 - x)² + 100·(y - x²)² times the vector (1, -2), at (2, 1): what Newton's method with
# conjugate gradients asks for. The Hessian is [[2 - 400y + 1200x², -400x], [-400x, 200]] = [[4402, -800], [-800, 200]],
# so it prints x@-1@2 = 6002 and y@-1@2 = -1200.
set -eu
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}

"$tidu" linearize rosenbrock.json --wrt x --wrt y |
    "$tidu" transpose |
    "$tidu" linearize --wrt x --wrt y |
    "$tidu" materialize |
    "$tidu" eval --set x=2 --set y=1 --set f@-1=1 --set x@2=1 --set y@2=-2
