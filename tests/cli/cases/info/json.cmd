# Exact numbers for programs.
tidu linearize samples/f.json --wrt x | tidu info --json
