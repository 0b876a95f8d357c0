# A function of JAX has constants of Python, and types from data, too.
cat > "$TMP/model.py" <<'END'
import jax.numpy as jnp


def power(params, n, mode="sum", *rest):
    for _ in range(n):
        params = {"w": jnp.sin(params["w"])}
    return getattr(jnp, mode)(params["w"]) * len(rest)
END
cd "$TMP"
echo '{"params": {"w": [0.5, 1]}, "rest": ["a", "b"]}' > data.json
tidu build --jax model.py:power --inputs data.json -i n=2 -i 'mode="max"' | tidu eval --inputs data.json
