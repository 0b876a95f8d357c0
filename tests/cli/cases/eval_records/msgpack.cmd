# In msgpack tensors state their types, so that durations have units; it is read back as inputs.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json -o $TMP/out.msgpack
python -c "
import msgpack
found = msgpack.unpackb(open('$TMP/out.msgpack', 'rb').read())
print(found['trip']['legs']['type'], found['trip']['start']['type'], found['now.out']['type'])
open('$TMP/in.msgpack', 'wb').write(msgpack.packb({'t': found['trip'], 'now': found['now.out']}))"
tidu eval tests/cli/cases/eval_records/trip.json --inputs $TMP/in.msgpack
