# All parts, of what comes in.
tidu linearize samples/f.json --wrt x | tidu check --all | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
