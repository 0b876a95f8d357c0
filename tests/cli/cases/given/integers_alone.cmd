# A pattern of nothing but integers is an error.
cd tests/cli/cases/given
tidu jvp 'x * n' -i x:f64[] -i n:i64[] --wrt 'n*'
