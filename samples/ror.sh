#!/bin/sh
# Reverse over reverse: the Hessian of (1 - x)² + 100·(y - x²)² times (1, -2) once more, at (2, 1). The first gradients' own
# cotangents x@-1@-2 and y@-1@-2 are the vector, and it prints x@-2 = 6002 and y@-2 = -1200, as for.sh and rof.sh.
set -eu
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}

"$tidu" linearize rosenbrock.json --wrt x --wrt y |
    "$tidu" transpose |
    "$tidu" linearize --wrt x --wrt y |
    "$tidu" transpose |
    "$tidu" materialize |
    "$tidu" eval --set x=2 --set y=1 --set f@-1=1 --set x@-1@-2=1 --set y@-1@-2=-2
