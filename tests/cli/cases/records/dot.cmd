# Operands of a record are told by field, declared types by their fields, and structurally zero fields as such.
tidu linearize samples/segment.json --wrt s --output length | tidu transpose | tidu dot --types
