# At a terminal, tangents are yellow, cotangents magenta, ops cyan.
tidu linearize samples/cube.json --wrt x | tidu transpose | FORCE_COLOR=1 tidu show | cat -v
