# Assignments name outputs, and --output chooses.
tidu build 'h = x * x; y = sum(h); z = h[::-1]' -i 'x:f32[3]' --output z --output y
