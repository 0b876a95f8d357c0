# Constants of files: JSON as it is, and an array.
cd tests/cli/cases/given
echo "{\"steps\": 2, \"rate\": 0.5}" > "$TMP/config.json"
python -c "import numpy, sys; numpy.save(sys.argv[1], [1.0, 2.0])" "$TMP/x.npy"
tidu build model.py:decay -i "x0=@$TMP/x.npy" -i "config=@$TMP/config.json" -i k:f64[] -i n=1 --output "sum.*" | tidu eval --set k=1
