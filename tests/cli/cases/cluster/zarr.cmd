# Results written in chunks, and read so.
tidu eval samples/rosenbrock.json --set 'x=[1,2,3]' --set y=2 --batch x=0 --chunk 2 -o $TMP/z.zarr
tidu eval samples/rosenbrock.json --set x=@$TMP/z.zarr --set y=2 --batch x=0
