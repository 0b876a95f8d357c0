# A function of JAX; what it prints goes to standard error.
cat > "$TMP/model.py" <<'END'
import jax
import jax.numpy as jnp
from typing import NamedTuple


class Params(NamedTuple):
    w: jax.Array
    b: jax.Array


def loss(params: Params, x, scale=2.0):
    return {"loss": jnp.sum(jnp.tanh(x @ params.w + params.b)) * scale, "parts": [x[0], params.b]}
END
cd "$TMP"
tidu build --jax model.py:loss -i params.w:f64[3] -i params.b:f64[] -i x:f64[2,3]
tidu build --jax model.py:loss -i params.w:f32[3] -i params.b:f32[] -i x:f32[2,3] --output loss | tidu grad --wrt params.b | tidu eval --set params.w=[1,2,3] --set params.b=0.5 --set x=[[0,0.1,0],[0.1,0,0]]
