# Record types are listed with their fields, and inputs with their types.
tidu info samples/segment.json
