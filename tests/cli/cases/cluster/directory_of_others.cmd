# A directory in which nothing is called like an input.
mkdir $TMP/data
python -c "import numpy; numpy.save('$TMP/data/a.npy', numpy.zeros(3))"
tidu eval samples/rosenbrock.json --inputs $TMP/data --set y=2 --batch x=0
