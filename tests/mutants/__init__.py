"""The power of the tests, measured: a campaign of seeded faults in the sources, each held against the tests that reach it.

    python -m tests.mutants --seed 1 --mutants 100

`sites.py` chooses the faults, and `running.py` writes them all into a copy of the tree, each behind a switch (`probe.py`). It has
pytest note which tests reach which switch, and then runs these with one fault switched on, until the first fails (`plugin.py`).
"""
