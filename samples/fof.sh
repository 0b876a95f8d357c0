#!/bin/sh
# Forward over forward: the second derivative of y = x³ at x = 3, along x@1 = 1 and x@2 = 1.
# y'' = 6x, so it prints y@1@2 = 18.
set -eu
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}

"$tidu" linearize cube.json --wrt x |
    "$tidu" linearize --wrt x |
    "$tidu" materialize |
    "$tidu" eval --set x=3 --set x@1=1 --set x@2=1
