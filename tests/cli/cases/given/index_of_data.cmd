# JSON has no integers for an index.
tidu eval 'x[t]' --set x=1,2,3 --set t=1,2
