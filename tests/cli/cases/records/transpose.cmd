# Its cotangent is one record, put together of what arrives for each field.
tidu linearize samples/segment.json --wrt s --output length | tidu transpose
