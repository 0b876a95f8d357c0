# Where bodies differ.
sed 's/"sub"/"add"/' samples/logistic_map.json | tidu diff --exact samples/logistic_map.json -
