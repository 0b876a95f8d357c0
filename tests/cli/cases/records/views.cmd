# Views in summaries and listings.
tidu info samples/interval.json
tidu info --json samples/interval.json
tidu show samples/interval.json
