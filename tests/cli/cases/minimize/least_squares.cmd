# Residuals, with standard errors: the slope of a line.
tidu minimize 'r = a * t - y' -i a:f64[] --set a=1 --set t=[1,2,3] --set y=[2,4,6.5] --wrt a --method least_squares --json |
  python3 -c 'import json, sys; r = json.load(sys.stdin); print(round(r["values"]["a"], 9), round(r["standard_errors"]["a"], 9))'
