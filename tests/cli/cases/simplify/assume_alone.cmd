# What may be assumed is said to --simplify.
tidu materialize samples/f.json --assume finite
