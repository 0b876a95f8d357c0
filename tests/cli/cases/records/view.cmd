# What a page tells of the last node: a cotangent that is put together, with its values.
tidu linearize samples/events.json --wrt events | tidu transpose |
  tidu view --inputs tests/cli/cases/records/events_values.json --set loss@-1=1 |
  sed -nE 's|.*<script type="application/json" id="data">(.*)</script>.*|\1|p' |
  python -c 'import json, sys; print(*json.load(sys.stdin)["steps"][-2].values(), sep="\n")'
