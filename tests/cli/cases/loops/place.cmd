# Messages name places from the outside in.
sed 's/"twofold", "inputs": \[0\]/"twofolds", "inputs": [0]/' samples/conformance/valid/loops_nested.json | tidu check
