#!/bin/sh
# Writes the gradient of the loss by the weights as a graph: gradient.sh OUT (default: stdout).
# It takes the inputs of loss.json and the loss's cotangent loss@-1 (give it 1), and gives w@-1 = Xᵀ(σ(X·w) - (1 + t)/2) + penalty·w.
set -eu
tidu=${TIDU:-tidu}
loss=$(dirname "$0")/loss.json

"$tidu" linearize "$loss" --wrt w |
    "$tidu" transpose |
    "$tidu" materialize -o "${1:--}"
