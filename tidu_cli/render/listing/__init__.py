"""Documents as text that people read: every value on a line, with its type and what it is computed of."""
