# The body of a loop stands below its node.
tidu show samples/logistic_map.json
