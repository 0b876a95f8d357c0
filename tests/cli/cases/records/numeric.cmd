# Derivatives against difference quotients, along tangents of records and of times; which errors are small depends on the machine.
tidu check --numeric samples/segment.json samples/events.json --seed 3 | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
