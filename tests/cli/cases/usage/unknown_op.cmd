# A misspelt op.
tidu ops dot_genral
