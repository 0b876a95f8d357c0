# What has derivatives already is made one graph first.
tidu linearize samples/f.json --wrt x | tidu convert --stop x
