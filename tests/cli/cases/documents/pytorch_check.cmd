# Options of the model that it would be do not hide what to do.
tidu check tests/cli/cases/documents/pytorch.pt --dim batch=1
