# The structural tangent of datetimes: how many of their units.
tidu linearize samples/events.json --wrt due --tangent 'due={instant: {periods: f64}}'
