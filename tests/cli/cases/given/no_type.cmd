# An -i that says no type needs data.
cd tests/cli/cases/given
tidu info model.py:decay -i x0 -i k:f64[]
