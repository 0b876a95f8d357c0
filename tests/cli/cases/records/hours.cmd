# A gradient by hours, of fields that are chosen; the other field's tangent is zero.
tidu linearize samples/events.json --wrt events --tangent 'events={at: duration[h]}' | tidu transpose
