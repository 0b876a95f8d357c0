#!/bin/sh
# Writes the product of the loss's Hessian with a vector as a graph: hessian_vector.sh OUT (default: stdout).
# It takes the inputs of loss.json, loss@-1 (give it 1) and the vector w@2, and gives w@-1@2 = Xᵀ(D·(X·w@2)) + penalty·w@2,
# where D = σ(1 - σ). The Hessian, 31 × 31 here, is never formed.
set -eu
tidu=${TIDU:-tidu}
loss=$(dirname "$0")/loss.json

"$tidu" linearize "$loss" --wrt w |
    "$tidu" transpose |
    "$tidu" linearize --wrt w |
    "$tidu" materialize -o "${1:--}"
