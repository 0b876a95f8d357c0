# Each tensor of a record is a member of an npz file, datetimes are NumPy's; it is read back as inputs.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json -o $TMP/out.npz
python -c "
import numpy as np
for name, value in np.load('$TMP/out.npz').items():
    print(name, value.dtype, value.tolist())"
python -c "
import numpy as np
found = np.load('$TMP/out.npz')
np.savez('$TMP/in.npz', now=found['now.out'], **{f't{name[4:]}': found[name] for name in found if name.startswith('trip')})"
tidu eval tests/cli/cases/eval_records/trip.json --inputs $TMP/in.npz
