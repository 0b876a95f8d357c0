# A loop is a box with its body inside; what it carries goes round.
tidu dot samples/logistic_map.json
