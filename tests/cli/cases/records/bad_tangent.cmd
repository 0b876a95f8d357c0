# A tangent type of a field that its type does not admit.
tidu linearize samples/events.json --wrt events --tangent 'events={at: f64}'
