# A name that the document has not.
tidu rename samples/mlp.json --key W=w
