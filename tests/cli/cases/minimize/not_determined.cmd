# As many residuals as unknowns say nothing of errors.
tidu minimize 'r = a * t - y' -i a:f64[] --set a=1 --set t=[2] --set y=[4] --wrt a --method least_squares
