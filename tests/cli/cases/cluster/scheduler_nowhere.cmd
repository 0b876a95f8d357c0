# Nobody answers.
tidu eval samples/rosenbrock.json --set 'x=[1,2,3]' --set y=2 --batch x=0 --scheduler tcp://127.0.0.1:9
