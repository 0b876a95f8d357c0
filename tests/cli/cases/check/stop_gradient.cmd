# What stop_gradient passes on is held still in difference quotients: the greatest element of a softmax.
tidu check samples/softmax.json --numeric | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
