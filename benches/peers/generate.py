#!/usr/bin/env python3
"""Deterministic workload generator for the peer benchmarks (own code, no RNG library state).

Every random number is splitmix64(stream, index), so files are bit-identical on every machine.
Writes, under --out (default ~/.cache/deltaic-peers/data):
  <name>.parquet                 (for DuckDB / Polars / DataFusion / delta-rs / the new engine; zstd-1)
  raw/<name>.<col>.bin           (little-endian i64 columns, for the Rust harnesses; strings as dictionary code)
Delta files are Z-sets: same columns + w (+1/-1); an update is a -1 row (before image) and a +1 row.
manifest.json lists the row counts.
"""
import argparse, json, os, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq

M64 = np.uint64(0xFFFFFFFFFFFFFFFF)
def sm(stream, n, start=0):
    """n uniform u64 of stream number `stream`"""
    with np.errstate(over='ignore'):
        z = (np.arange(start, start + n, dtype=np.uint64) + np.uint64(stream) * np.uint64(0x632BE59BD9B4E019)) * np.uint64(0x9E3779B97F4A7C15)
        z ^= z >> np.uint64(30); z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27); z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z
def u01(stream, n, start=0): return (sm(stream, n, start) >> np.uint64(11)).astype(np.float64) * (1.0 / 9007199254740992.0)
def below(stream, n, m): return (u01(stream, n) * m).astype(np.int64)

STATUS = ["OPEN", "PAID", "SHIPPED", "CLOSED", "CANCELLED"]
REGION = ["EMEA", "NORAM", "LATAM", "APAC", "AFRICA", "ANZ", "NORDICS", "CEE"]
SEG = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
DAY_US = 86_400_000_000
T0 = 1_704_067_200_000_000  # 2024-01-01

def zipfish(stream, n, nkeys):
    r = np.minimum((u01(stream, n) ** 3 * nkeys).astype(np.int64), nkeys - 1)   # P(rank) ~ rank^(-2/3)
    return (r * 611953 + 7) % nkeys                                              # scatter the hot keys

class Out:
    def __init__(s, d): s.d = d; os.makedirs(d + '/raw', exist_ok=True); s.man = {}
    def put(s, name, cols, dicts={}, ts=()):
        """cols: dict name -> int64 array; dicts: col -> list of strings (codes stored raw)"""
        n = len(next(iter(cols.values())))
        arrs, names = [], []
        for c, a in cols.items():
            a = np.ascontiguousarray(a, dtype=np.int64); a.tofile(f'{s.d}/raw/{name}.{c}.bin')
            if c in dicts:
                x = pa.DictionaryArray.from_arrays(pa.array(a.astype(np.int32)), pa.array(dicts[c])).cast(pa.string())
            elif c in ts: x = pa.array(a).cast(pa.timestamp('us'))
            else: x = pa.array(a)
            arrs.append(x); names.append(c)
        pq.write_table(pa.table(arrs, names=names), f'{s.d}/{name}.parquet', compression='zstd', compression_level=1, row_group_size=1 << 20)
        s.man[name] = n


def main():
    ap = argparse.ArgumentParser(); ap.add_argument('--out', default=os.path.expanduser('~/.cache/deltaic-peers/data')); ap.add_argument('--rows', type=int, default=10_000_000)
    ap.add_argument('--scd-keys', type=int, default=5_000_000); ap.add_argument('--only', default='orders,tpch,scd'); a = ap.parse_args()
    N, NK = a.rows, a.rows // 10
    o = Out(a.out)
    mf = a.out + '/manifest.json'
    if os.path.exists(mf): o.man = json.load(open(mf))
    SIZES = [("0.01", 0.0001, 20), ("0.1", 0.001, 10), ("1", 0.01, 5), ("10", 0.1, 3)]
    if 'orders' in a.only:
        amount = lambda st, n: 100 + below(st, n, 1_000_000)
        T = dict(order_id=np.arange(N, dtype=np.int64), customer_id=zipfish(1, N, NK), status=below(2, N, 5), amount=amount(3, N), ts=T0 + below(4, N, 365 * 86400) * 1_000_000)
        # customers: ids 0..0.98*NK of a scattered order are present
        perm = (np.arange(NK, dtype=np.int64) * 314159 + 11) % NK
        nc = int(NK * 0.98)
        C = dict(customer_id=perm[:nc].copy(), tier=below(10, nc, 4), region=below(11, nc, 8))
        D = dict(status=STATUS, region=REGION)
        o.put('orders', T, D, ts=('ts',)); o.put('customers', C, D)
        missing = list(perm[nc:]); nextc = NK
        nexto = N; st = 100
        def grow(X, extra): return {k: np.concatenate([X[k], extra[k]]) for k in X}
        alive_o = np.ones(N, bool); alive_c = np.ones(nc, bool)
        for label, frac, reps in SIZES:
            for r in range(reps):
                st += 20
                # orders delta: d logical changes: 60% ins, 20% upd, 20% del
                d = int(N * frac); ni, nu, nd = d * 6 // 10, d * 2 // 10, d * 2 // 10
                idx = np.flatnonzero(alive_o)
                pick = idx[np.argsort(sm(st, len(idx)), kind='stable')[:nu + nd]] if d > 200_000 else np.array(sorted({int(x): 0 for x in idx[below(st, (nu + nd) * 2, len(idx))]}.keys()))
                if len(pick) > nu + nd: pick = pick[np.argsort(sm(st + 1, len(pick)))[:nu + nd]]
                up, de = pick[:nu], pick[nu:nu + nd]
                ins = dict(order_id=np.arange(nexto, nexto + ni), customer_id=zipfish(st + 2, ni, NK), status=below(st + 3, ni, 5), amount=amount(st + 4, ni), ts=T0 + below(st + 5, ni, 365 * 86400) * 1_000_000); nexto += ni
                upn = {k: T[k][up].copy() for k in T}; upn['status'] = (upn['status'] + 1) % 5; upn['amount'] = amount(st + 6, len(up))
                parts = [({k: T[k][de] for k in T}, -1), ({k: T[k][up] for k in T}, -1), (upn, 1), (ins, 1)]
                dl = {k: np.concatenate([p[0][k] for p in parts]) for k in T}
                w = np.concatenate([np.full(len(p[0]['order_id']), p[1], np.int64) for p in parts])
                o.put(f'orders_d{label}_{r}', dict(dl, w=w), D, ts=('ts',))
                for k in T: T[k][up] = upn[k]
                alive_o[de] = False; T = grow(T, ins); alive_o = np.concatenate([alive_o, np.ones(ni, bool)])
                # customers delta, same fraction
                d = int(NK * frac); ni, nu, nd = d * 6 // 10, d * 2 // 10, d * 2 // 10
                idx = np.flatnonzero(alive_c)
                pick = idx[np.argsort(sm(st + 7, len(idx)), kind='stable')[:nu + nd]]
                up, de = pick[:nu], pick[nu:nu + nd]
                m = min(ni // 2, len(missing)); ids = np.array(missing[:m] + list(range(nextc, nextc + ni - m)), dtype=np.int64); missing = missing[m:]; nextc += ni - m
                ins = dict(customer_id=ids, tier=below(st + 8, ni, 4), region=below(st + 9, ni, 8))
                upn = {k: C[k][up].copy() for k in C}; upn['tier'] = (upn['tier'] + 1) % 4
                parts = [({k: C[k][de] for k in C}, -1), ({k: C[k][up] for k in C}, -1), (upn, 1), (ins, 1)]
                dl = {k: np.concatenate([p[0][k] for p in parts]) for k in C}
                w = np.concatenate([np.full(len(p[0]['customer_id']), p[1], np.int64) for p in parts])
                o.put(f'customers_d{label}_{r}', dict(dl, w=w), D)
                missing += list(C['customer_id'][de])
                for k in C: C[k][up] = upn[k]
                alive_c[de] = False; C = grow(C, ins); alive_c = np.concatenate([alive_c, np.ones(ni, bool)])
        o.put('orders_final', {k: v[alive_o] for k, v in T.items()}, D, ts=('ts',)); o.put('customers_final', {k: v[alive_c] for k, v in C.items()}, D)
    if 'tpch' in a.only:
        SF = N / 10_000_000; nc, no = int(150_000 * SF), int(1_500_000 * SF)
        def mk(st, okeys):
            n = len(okeys)
            od = dict(o_orderkey=okeys, o_custkey=below(st, n, nc), o_orderdate=8035 + below(st + 1, n, 2405), o_shippriority=np.zeros(n, np.int64))
            k = 1 + below(st + 2, n, 7); tot = int(k.sum()); rep = np.repeat(np.arange(n), k)
            li = dict(l_orderkey=okeys[rep], l_linenumber=np.arange(tot) - np.repeat(np.cumsum(k) - k, k), l_extendedprice=90_000 + below(st + 3, tot, 10_000_000), l_discount=below(st + 4, tot, 11), l_shipdate=od['o_orderdate'][rep] + 1 + below(st + 5, tot, 121))
            return od, li
        cu = dict(c_custkey=np.arange(nc), c_mktsegment=below(1001, nc, 5))
        od, li = mk(1010, np.arange(no, dtype=np.int64))
        o.put('tpch_customer', cu, dict(c_mktsegment=SEG)); o.put('tpch_orders', od); o.put('tpch_lineitem', li)
        # deltas: new orders with their lines (60%), order delete with lines (20%), order date/price update (20%), by orders fraction
        nexto = no; st = 2000
        order = np.argsort(sm(1999, no), kind='stable'); pos = 0
        start = np.searchsorted(li['l_orderkey'], np.arange(no)); end = np.append(start[1:], len(li['l_orderkey']))
        for label, frac, reps in SIZES:
            for r in range(reps):
                st += 20; d = int(no * frac); ni, nu, nd = d * 6 // 10, d * 2 // 10, d * 2 // 10
                oi, lii = mk(st, np.arange(nexto, nexto + ni, dtype=np.int64)); nexto += ni
                up, de = order[pos:pos + nu], order[pos + nu:pos + nu + nd]; pos += nu + nd   # each base order is touched at most once
                lidx = lambda ks: np.concatenate([np.arange(start[k], end[k]) for k in ks]) if len(ks) else np.zeros(0, np.int64)
                ld, lu = lidx(de), lidx(up)
                lnew = {k: li[k][lu].copy() for k in li}; lnew['l_extendedprice'] = 90_000 + below(st + 10, len(lu), 10_000_000)
                onew = {k: od[k][up].copy() for k in od}; onew['o_shippriority'] = np.ones(nu, np.int64)
                cat = lambda ps, base: dict({k: np.concatenate([p[0][k] for p in ps]) for k in base}, w=np.concatenate([np.full(len(next(iter(p[0].values()))), p[1], np.int64) for p in ps]))
                o.put(f'tpch_orders_d{label}_{r}', cat([({k: od[k][de] for k in od}, -1), ({k: od[k][up] for k in od}, -1), (onew, 1), (oi, 1)], od))
                o.put(f'tpch_lineitem_d{label}_{r}', cat([({k: li[k][ld] for k in li}, -1), ({k: li[k][lu] for k in li}, -1), (lnew, 1), (lii, 1)], li))
    if 'scd' in a.only:
        K = a.scd_keys
        CITY = [f'City-{i:04d}' for i in range(2000)]; CTRY = [f'Country {i:03d}' for i in range(200)]; SEGS = SEG; TIER = ['bronze', 'silver', 'gold', 'platinum']
        CH = ['web', 'store', 'partner', 'phone', 'app', 'email']
        def rows(st, keys, t):
            n = len(keys)
            return dict(id=keys, name=below(st, n, 1 << 40), city=below(st + 1, n, 2000), country=below(st + 2, n, 200), segment=below(st + 3, n, 5), tier=below(st + 4, n, 4), channel=below(st + 5, n, 6), credit=below(st + 6, n, 1_000_000), score=below(st + 7, n, 1000), balance=below(st + 8, n, 1 << 33), seq=t)
        DD = dict(city=CITY, country=CTRY, segment=SEGS, tier=TIER, channel=CH)
        def put(name, c):
            n = len(c['id'])
            for k, v in c.items(): np.ascontiguousarray(v, dtype=np.int64).tofile(f'{o.d}/raw/{name}.{k}.bin')
            cols = {}
            for k, v in c.items():
                if k == 'name': cols[k] = pa.array(np.char.add('Name-', np.char.mod('%013d', v)))
                elif k in DD: cols[k] = pa.DictionaryArray.from_arrays(pa.array(v.astype(np.int32)), pa.array(DD[k])).cast(pa.string())
                elif k == 'op': cols[k] = pa.array(np.where(v == 1, 'D', 'U'))
                elif k == 'seq': cols[k] = pa.array(T0 + v * 1_000_000).cast(pa.timestamp('us'))
                else: cols[k] = pa.array(v)
            pq.write_table(pa.table(cols), f'{o.d}/{name}.parquet', compression='zstd', compression_level=1, row_group_size=1 << 20); o.man[name] = n
        keys = (np.arange(K, dtype=np.int64) * 611953 + 3) % K if K % 611953 else np.arange(K)
        base = rows(5000, keys, below(5010, K, 1_000_000)); put('dim_init', base)
        st = 6000; now = 2_000_000; nextk = K
        prev_batch_time = now
        for label, frac, reps in [("0.1", 0.001, 7), ("1", 0.01, 5), ("10", 0.1, 3)]:
            for r in range(reps):
                st += 20; d = int(K * frac); nn = d // 10     # 10% new keys, the rest hits existing keys; 5% deletes; 5% out-of-order (an event time before the previous batch)
                ks = np.unique(below(st, d - nn, nextk)); ks = np.concatenate([ks, np.arange(nextk, nextk + nn)]); nextk += nn
                ks = ks[np.argsort(sm(st + 1, len(ks)), kind='stable')]; n = len(ks)
                now += 1_000_000
                t = now + below(st + 2, n, 900_000)
                ooo = u01(st + 3, n) < 0.05; t[ooo] = 1_000_000 + below(st + 4, int(ooo.sum()), now - 1_000_000)
                c = rows(st + 5, ks, t); c['op'] = ((u01(st + 15, n) < 0.05) & (ks < nextk - nn)).astype(np.int64)
                put(f'dim_cdc{label}_{r}', c)
    json.dump(o.man, open(mf, 'w'), indent=0)
main()
