#!/bin/sh
# Forward over forward over forward: the third derivative of y = x⁴ at x = 2, along 1 each time.
# y''' = 24x, so it prints y@1@2@3 = 48.
set -eu
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}

"$tidu" linearize quartic.json --wrt x |
    "$tidu" linearize --wrt x |
    "$tidu" linearize --wrt x |
    "$tidu" materialize |
    "$tidu" eval --set x=2 --set x@1=1 --set x@2=1 --set x@3=1
