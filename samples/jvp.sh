#!/bin/sh
# Jacobian-vector product: the tangent of y = (x + x)·x at x = 3 along x@1 = 1.
# y' = 4x, so it prints y@1 = 12.
set -eu
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}

"$tidu" linearize f.json --wrt x |
    "$tidu" materialize |
    "$tidu" eval --set x=3 --set x@1=1
