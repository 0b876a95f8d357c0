# Numbers as one types them: without a leading or trailing digit, with a sign, infinite, complex, a vector without brackets.
for x in .03 +1 1. -2.e-3 inf -inf nan; do tidu eval samples/f.json --set x=$x; done
for z in 1+2j 2j -j '(1.5-.5j)'; do tidu build 'z * z' -i z:c128[] | tidu eval --set z=$z; done
tidu build '2 * v' -i v:f64[3] | tidu eval --set v=1,.5,-inf
