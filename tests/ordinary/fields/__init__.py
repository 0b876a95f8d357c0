"""The functions, a module for each field. They are as people write them, so the linter leaves them alone."""
