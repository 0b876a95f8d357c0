# An optimizer of one's own, as a formula.
tidu step 'loss = w * w' -i w:f64[] --wrt w --optimizer 'new_weight = weight - lr * sign(gradient)' | tidu show
