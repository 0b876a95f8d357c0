# A directory that is there.
mkdir $TMP/z.zarr
tidu eval samples/rosenbrock.json --set 'x=[1,2,3]' --set y=2 --batch x=0 -o $TMP/z.zarr
