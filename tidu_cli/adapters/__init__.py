"""The adapters that come with tidu: for each port by name, where it is. Nothing outside this folder names one."""

FORMATS = {
    "onnx": ("tidu_cli.adapters.onnx.port", "ONNX", (".onnx",)),
    "mlir": ("tidu_cli.adapters.stablehlo.port", "TEXT", (".mlir",)),
    "mlirbc": ("tidu_cli.adapters.stablehlo.port", "ARTIFACT", (".mlirbc",)),
    "c": ("tidu_cli.adapters.c.port", "C", (".c",)),
    "py": ("tidu_cli.adapters.python_source.port", "PYTHON", (".py",)),
}
"""Modules, names in them, and suffixes."""

UNREAD = {"pytorch": ("tidu_cli.adapters.unread", "PYTORCH")}  # recognized, to say what to do instead

ENGINES = {"native": ("tidu_cli.adapters.native.port", "NATIVE"), "xla": ("tidu_cli.adapters.jax.port", "XLA")}

SOURCES = {
    "formula": ("tidu_cli.adapters.numpy.api", "FORMULA"),
    "function": ("tidu_cli.adapters.numpy.api", "FUNCTION"),
    "jax": ("tidu_cli.adapters.jax.port", "JAX"),
}

DERIVED = ("tidu_cli.adapters.numpy.derived", "derived")  # derivatives of functions of Python

SCHEDULERS = {"dask": ("tidu_cli.adapters.dask.port", "DASK")}

_OF_NUMPY = "cond fixed_point formula fori_loop linear_solve root scan static stop_gradient switch trace while_loop"

FUNCTIONS = {
    **dict.fromkeys(_OF_NUMPY.split(), "tidu_cli.adapters.numpy.api"),
    **dict.fromkeys(("from_jax", "to_jax"), "tidu_cli.adapters.jax.port"),
    "load_onnx": "tidu_cli.adapters.onnx.port",
}
"""The functions that adapters add to the API, and their modules."""
