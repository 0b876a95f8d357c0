#!/bin/sh
# The n-th derivative of exp(a·x) by x, for a = 2 at x = 0.5, by n calls of linearize: nth_derivative.sh N.
# It is aⁿ·exp(a·x), so it prints y@1@2@...@N = 2ᴺ·e: 5.436... for N = 1, 86.98... for N = 5.
set -eu
if [ $# -ne 1 ]; then
    echo "usage: $0 N" >&2
    exit 2
fi
cd "$(dirname "$0")"
tidu=${TIDU:-tidu}
graph=$(mktemp -d)
trap 'rm -rf "$graph"' EXIT

n=$1
set -- --set a=2 --set x=0.5
cp exp_ax.json "$graph/0.json"
pass=1
while [ "$pass" -le "$n" ]; do
    # Materializing between passes merges what the passes have in common, so that the graph stays small.
    "$tidu" linearize "$graph/$((pass - 1)).json" --wrt x | "$tidu" materialize -o "$graph/$pass.json"
    set -- "$@" --set "x@$pass=1"
    pass=$((pass + 1))
done
"$tidu" eval "$graph/$n.json" "$@"
