# The third derivative of Σ w·h², by weights once and by times twice: 2·(1 + 2 + 3 + 4) along these tangents.
tidu linearize samples/events.json --wrt events --tangent 'events={at: duration[h], weight: f64}' |
  tidu linearize --wrt events --tangent 'events={at: duration[h]}' |
  tidu linearize --wrt events --tangent 'events={at: duration[h]}' |
  tidu materialize |
  tidu eval --inputs tests/cli/cases/records/events_values.json \
    --set 'events@1={"at": [0, 0, 0, 0], "weight": [1, 2, 3, 4]}' \
    --set 'events@2={"at": [1, 1, 1, 1]}' --set 'events@3={"at": [1, 1, 1, 1]}'
