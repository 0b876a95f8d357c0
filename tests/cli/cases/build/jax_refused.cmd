# What has no place in a graph is told with its equation and line.
cat > "$TMP/model.py" <<'END'
import jax
import jax.numpy as jnp


def printing(x):
    jax.debug.print("{}", x)
    return x


def asking(x):
    return x if x > 0 else -x


def reducing(x):
    return jax.scipy.linalg.hessenberg(
        x
    )
END
cd "$TMP"
for way in printing:f64[2] asking:f64[] reducing:f64[3,3] missing:f64[]; do
  tidu build --jax model.py:${way%%:*} -i x:${way#*:} && exit 1 || [ $? = 1 ]
done
tidu build --jax model.py:asking -i y:f64[] && exit 1 || [ $? = 1 ]
tidu build --jax model.py:asking -i 'x:{a: f64[]}' && exit 1 || [ $? = 1 ]
tidu build --jax model.py:asking -i 'x:datetime[s]' && exit 1 || [ $? = 1 ]
tidu build --jax 'x * x' -i x:f64[] && exit 1 || [ $? = 2 ]
tidu build --rules 'x * x' -i x:f64[] && exit 1 || [ $? = 2 ]
