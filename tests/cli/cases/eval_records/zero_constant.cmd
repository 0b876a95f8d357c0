# Fields of a constant tangent that are null are left out.
tidu linearize tests/cli/cases/eval_records/trip.json --wrt t --output square | tidu materialize --set 't@1={"start": null, "legs": null, "riders": null, "to": [{"x": 1, "y": null}, null]}' |
  tidu eval --inputs tests/cli/cases/eval_records/values.json
