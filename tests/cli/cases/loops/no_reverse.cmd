# A while has no transpose, wherever it stands.
tidu linearize samples/conformance/valid/loops_nested.json --wrt a | tidu transpose
