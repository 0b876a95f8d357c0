# One property of a view is no tangent.
tidu linearize samples/interval.json --wrt over --tangent 'over={middle: f64}'
