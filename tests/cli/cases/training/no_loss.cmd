# A step lowers one number.
tidu step samples/vector.json --wrt x
