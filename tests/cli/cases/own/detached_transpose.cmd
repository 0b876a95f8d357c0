# The derivative of an op of the document, cut loose from what it reads, is transposed: patterns tell the types that digests hide.
tidu linearize samples/softplus.json --wrt x --detach | tidu transpose | sed '1,/"graphs"/d'
