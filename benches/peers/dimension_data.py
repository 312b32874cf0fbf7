"""A dimension and batches of change events for it, the same on every machine."""
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from generate import below, shuffled, unit

WORDS = {
    "city": [f"City-{n:04}" for n in range(2000)],
    "country": [f"Country {n:03}" for n in range(200)],
    "segment": ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"],
    "tier": ["bronze", "silver", "gold", "platinum"],
    "channel": ["web", "store", "partner", "phone", "app", "email"],
}
NUMBERS = {"credit": 1_000_000, "score": 1000, "balance": 1 << 33}
COLUMNS = ["name", *WORDS, *NUMBERS]
YEAR_START_US = 1_704_067_200_000_000
# Share of the keys in per cent, and number of batches.
BATCHES = {"0.1": 5, "1": 4, "10": 3}


def events(stream, keys, seconds, deleted):
    """An event per key: `op` is U or D, `seq` the time."""
    count = len(keys)
    columns = {"id": pa.array(keys)}
    columns["name"] = pa.array(np.char.add("Name-", np.char.mod("%013d", below(stream, count, 1 << 40))))
    for at, (name, words) in enumerate(WORDS.items(), 1):
        codes = pa.array(below(stream + at, count, len(words)).astype(np.int32))
        columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(words)).cast(pa.string())
    for at, (name, limit) in enumerate(NUMBERS.items(), 6):
        columns[name] = pa.array(below(stream + at, count, limit))
    columns["seq"] = pa.array(YEAR_START_US + seconds * 1_000_000).cast(pa.timestamp("us", "UTC"))
    columns["op"] = pa.array(np.where(deleted, "D", "U"))
    return pa.table(columns)


def write(folder, keys):
    """load.parquet, then <share>_<n>.parquet: a tenth new keys, 5 % deletes, 5 % events that are late."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def put(name, table):
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd", compression_level=1, row_group_size=1 << 20)

    put("load", events(9000, shuffled(8999, keys), below(9010, keys, 1_000_000), np.zeros(keys, bool)))
    stream, now, known = 9100, 2_000_000, keys
    for share, count in BATCHES.items():
        for n in range(count):
            stream += 20
            size = int(keys * float(share) / 100)
            new = size // 10
            old = np.unique(below(stream, size - new, known))
            ids = np.concatenate([old, np.arange(known, known + new)])
            ids = ids[shuffled(stream + 1, len(ids))]
            now += 1_000_000
            seconds = now + below(stream + 2, len(ids), 900_000)
            late = unit(stream + 3, len(ids)) < 0.05
            seconds[late] = 1_000_000 + below(stream + 4, len(ids), now - 1_000_000)[late]
            deleted = (unit(stream + 15, len(ids)) < 0.05) & (ids < known)
            put(f"{share}_{n}", events(stream + 5, ids, seconds, deleted))
            known += new
    (folder / "done").touch()
