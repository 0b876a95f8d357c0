# Units of time are those of fixed length.
tidu linearize samples/events.json --wrt events --tangent 'events={at: duration[M]}'
