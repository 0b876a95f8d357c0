# Record types and custom operations are declared first.
tidu show samples/segment.json | head -4; tidu show samples/softplus.json
