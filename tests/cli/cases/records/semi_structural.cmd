# A structural tangent of one input, and a natural one in a field of another.
tidu linearize samples/events.json --wrt events --wrt due \
  --tangent 'events={at: duration[h], weight: f64}' --tangent 'due={instant: {periods: f64}}' |
  tidu transpose |
  tidu eval --inputs tests/cli/cases/records/events_values.json --set loss@-1=1
