# No command at all.
tidu
