# Values are JSON: lists for arrays, re and im for complex numbers, strings for what JSON has no number for.
tidu eval tests/cli/cases/commands/identity.json --set 'v=[[1, 2], [3, 4]]' --set 'z={"re": 1, "im": 2}' --set 'w="-Infinity"'
