# The digests that --output and --bind take.
tidu info --digests samples/f.json
tidu linearize samples/f.json --wrt x --output sha256:87319d5aa3ccbf6725f83fa374e872129b21b5381e91c52ad896ffea7b41992a --detach
