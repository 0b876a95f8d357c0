# An op that there is not.
tidu check --ops sine
