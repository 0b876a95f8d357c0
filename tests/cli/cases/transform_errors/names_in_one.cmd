# Names in one option, with commas.
tidu build 'x * y' -i x:f64[] -i y:f64[] | tidu grad --wrt x,y
