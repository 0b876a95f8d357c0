# Complex numbers are pairs for callers, and structs within; halves are their bits.
tidu grad 'sum(abs(z * z))' -i z:c64[2] --wrt z --format c | grep -e ^typedef -e ^int -e '^#define .*SIZE'
tidu build 'x * 2 + 1' -i x:f16[2] --format c | grep -e ^int -e 'k_save.*;'
