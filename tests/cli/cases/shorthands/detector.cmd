# Many numbers are made one by a loss.
cd tests/cli/cases/shorthands
tidu grad 'boxes = reshape(stack([x, x]), (1, 3549, 6))' -i x:f32[3549,3] --wrt x
