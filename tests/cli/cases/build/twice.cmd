# An input that is declared twice is wrong usage.
tidu build 'x' -i 'x:f64[]' -i 'x:f32[]'
