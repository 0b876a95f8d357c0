"""Files of values: what `eval` reads for a graph's inputs and writes for its outputs. Keys stand in their text form.

Values read are either untyped (numbers, text of times, and nested lists, as JSON has them) or typed (a `Literal`, or a NumPy
array), or of a record a dict of these by field, of a tuple a list; which of them fit which input is for `tidu_cli.runtime.evaluate`
to say.
"""

from tidu_cli.formats.values.reading import parse_assignment, read_values
from tidu_cli.formats.values.text import values_at
from tidu_cli.formats.values.writing import FORMATS, require_writable, write_values

__all__ = ["FORMATS", "parse_assignment", "read_values", "require_writable", "values_at", "write_values"]
