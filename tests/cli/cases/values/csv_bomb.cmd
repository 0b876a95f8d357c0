# A small csv that stands for many numbers.
python3 -c 'import gzip, os; open(os.environ["TMP"] + "/v.csv.gz", "wb").write(gzip.compress(b"x\n" + b"1\n" * 3_000_000))'; tidu eval 'sum(x)' --inputs $TMP/v.csv.gz
