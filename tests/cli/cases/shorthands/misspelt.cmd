# A misspelt key.
tidu grad samples/logsumexp.json --wrt X
