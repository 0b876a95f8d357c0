# The batch may be any axis of an input; inputs without --batch are shared.
tidu build 'y = sum(w*x); z = 2*w' -i 'w:f64[3]' -i 'x:f64[3]' | tidu eval --set 'w=[1,2,3]' --set 'x=[[1,2],[3,4],[5,6]]' --batch x=-1
