#!/bin/sh
# What `make release` runs: builds sdist and wheel into dist/, checks them with twine, installs the wheel in an empty environment, and
# runs the first commands of the README there, on what they print. Needs the environment of `make check`.
set -eu
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$python" -m pip install --quiet --disable-pip-version-check build twine
rm -rf dist
"$python" -m build --outdir dist .
"$python" -m twine check --strict dist/*

echo 'Installing the wheel in an empty environment.'
"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check dist/*.whl
cp -r README.md samples "$scratch"
"$python" -m tools.first_commands "$scratch" "$scratch/venv/bin"
echo "dist/ holds $(basename dist/*.whl) and $(basename dist/*.tar.gz)"
