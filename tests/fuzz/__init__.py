"""A fuzzer of everything that takes input: documents, values, formulas, command lines, and programs of all primitives.

`make campaign` runs it at length; `python -m tests.fuzz --help` says how to run it by hand. `corpus/` holds a smallest input of
each failure that it has found, which the ordinary suite tries for ever after.
"""
