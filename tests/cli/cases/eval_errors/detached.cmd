# A graph whose values are elsewhere.
tidu linearize samples/f.json --wrt x --detach | tidu eval --set x@1=1
