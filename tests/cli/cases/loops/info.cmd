# Graphs within nodes are listed below those they stand in.
tidu info samples/conformance/valid/loops_nested.json
