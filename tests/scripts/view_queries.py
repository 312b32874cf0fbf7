"""Queries for views_equal_duckdb.py: a list that covers each kind of query once, and random compositions.

All are written so that the rows of the answer do not depend on the order of the input: LIMIT and
row_number() order by everything, integer sums stay in range, and sort orders name where NULLs go.
"""

# The sources: t, u and w are keyed tables that see updates and deletes, e only grows. Views may read
# them with their key (`id`) or, through t_, u_, w_, without it, so that equal rows occur.
COLUMNS = [("k", "INT", "int"), ("n", "INT", "int"), ("b", "BIGINT", "big"), ("d", "DOUBLE", "dbl"),
           ("m", "DECIMAL(12,2)", "dec"), ("s", "STRING", "str"), ("dt", "DATE", "date"),
           ("ts", "TIMESTAMP_NTZ", "ts"), ("f", "BOOLEAN", "bool")]
SOURCES = ["t_", "u_", "w_", "e"]

NAMED = {
    "filtered": "SELECT id, k, n, s FROM t WHERE n > 0 OR s IS NULL",
    "three_valued": "SELECT id FROM t WHERE NOT (k = 1 AND n > 3) OR f IS NOT TRUE",
    "in_list": "SELECT id, k IN (1, 2, NULL) AS i, n NOT IN (1, 2) AS o FROM t",
    "cases": "SELECT id, CASE WHEN k = 1 THEN 'one' WHEN k IS NULL THEN s ELSE upper(s) END AS c, "
             "CASE k WHEN 1 THEN n WHEN 2 THEN -n END AS x, COALESCE(n, k, -1) AS y, NULLIF(k, 1) AS z FROM u",
    "floats": "SELECT d, count(*) AS c, count(DISTINCT d) AS cd FROM t_ GROUP BY d",
    "float_order": "SELECT min(d) AS lo, max(d) AS hi, count(d) AS c FROM t_ WHERE d >= 0",
    "all_aggs": "SELECT k, count(*) AS c, count(n) AS cn, sum(n) AS sn, avg(n) AS an, min(n) AS mn, max(n) AS mx, "
                "min(s) AS ms, max(s) AS xs, sum(m) AS sm, min(b) AS mb, max(b) AS xb, min(dt) AS md, max(ts) AS xt, "
                "bool_and(f) AS ba, bool_or(f) AS bo FROM t_ GROUP BY k",
    "double_sums": "SELECT k, sum(d) AS sd, avg(d) AS ad FROM u_ GROUP BY k",
    "agg_filter": "SELECT k, count(*) FILTER (WHERE n > 0) AS p, sum(n) FILTER (WHERE f) AS q, "
                  "count(DISTINCT s) FILTER (WHERE n < 20) AS r FROM t_ GROUP BY k",
    "agg_distinct": "SELECT f, count(DISTINCT k) AS a, sum(DISTINCT n) AS b, count(DISTINCT d) AS c, "
                    "count(DISTINCT m) AS e, min(DISTINCT s) AS g FROM t_ GROUP BY f",
    "having_": "SELECT k, s, sum(n) AS sn FROM t_ GROUP BY k, s HAVING count(*) > 1 AND (sum(n) > 0 OR sum(n) IS NULL)",
    "group_by_expr": "SELECT n % 3 AS r, length(s) AS l, count(*) AS c FROM t_ GROUP BY n % 3, length(s)",
    "group_only": "SELECT s, m FROM t_ GROUP BY s, m",
    "global_agg": "SELECT count(*) AS c, sum(n) AS sn, min(s) AS ms, count(DISTINCT k) AS ck FROM t_",
    "global_empty": "SELECT count(*) AS c, sum(n) AS sn, max(m) AS mm, avg(n) AS an FROM t_ WHERE k = 12345",
    "global_having": "SELECT sum(n) AS sn FROM t_ HAVING count(*) > 30",
    "grouping_sets": "SELECT k, f, count(*) AS c, sum(n) AS sn FROM t_ GROUP BY GROUPING SETS ((k), (f), (k, f), ())",
    "rollups": "SELECT k, s, count(*) AS c FROM u_ GROUP BY ROLLUP (k, s)",
    "cubes": "SELECT k, f, sum(n) AS sn, grouping(k) AS gk FROM u_ GROUP BY CUBE (k, f)",
    "inner_join": "SELECT t.id AS i, u.id AS j, t.s AS x, u.m AS y FROM t JOIN u ON t.k = u.k AND t.n < u.n",
    "left_join": "SELECT t.id AS i, u.id AS j, u.s AS x FROM t LEFT JOIN u ON t.k = u.k AND u.n > 10 AND t.f",
    "right_join": "SELECT t.id AS i, u.id AS j, t.d AS x FROM t RIGHT JOIN u ON t.s = u.s AND t.n <> u.n",
    "full_join": "SELECT t.id AS i, w.id AS j FROM t FULL JOIN w ON t.k = w.k AND t.n > w.n WHERE t.k IS DISTINCT FROM 1",
    "full_join_where": "SELECT t.id AS i, w.id AS j FROM t FULL JOIN w ON t.n = w.n WHERE t.s IS NULL OR w.s > 'a'",
    "join_float_key": "SELECT t.id AS i, u.id AS j FROM t JOIN u ON t.d = u.d WHERE t.n > 20",
    "join_null_safe": "SELECT t.id AS i, u.id AS j FROM t JOIN u ON t.n IS NOT DISTINCT FROM u.n",
    "join_mixed_types": "SELECT t.id AS i, u.id AS j FROM t JOIN u ON t.n = u.b AND t.k < 3",
    "join_inequality": "SELECT t.id AS i, u.id AS j FROM t JOIN u ON t.dt < u.dt WHERE t.k = 3 AND u.k = 3",
    "join_using": "SELECT k, t.n AS tn, w.n AS wn FROM t_ t JOIN w_ w USING (k) WHERE k > 1",
    "right_using": "SELECT k, t.n AS tn, w.n AS wn FROM t_ t RIGHT JOIN w_ w USING (k)",
    "full_using": "SELECT k, s, t.n AS tn, w.n AS wn FROM t_ t FULL JOIN w_ w USING (k, s)",
    "cross_join": "SELECT t.id AS i, x.c AS c FROM t CROSS JOIN (SELECT count(*) AS c FROM e) x",
    "self_join": "SELECT a.id AS i, b.id AS j FROM t a JOIN t b ON a.s = b.s AND a.id < b.id",
    "self_left": "SELECT a.id AS i, b.id AS j FROM t a LEFT JOIN t b ON a.id = b.n",
    "three_joins": "SELECT t.id AS i, u.id AS j, w.id AS l FROM t LEFT JOIN u ON t.n = u.n "
                   "LEFT JOIN w ON u.m = w.m AND w.k = t.k",
    "join_of_aggs": "SELECT a.k AS k, a.c AS c, b.sn AS sn FROM (SELECT k, count(*) AS c FROM t_ GROUP BY k) a "
                    "FULL JOIN (SELECT k, sum(n) AS sn FROM u_ GROUP BY k) b ON a.k = b.k",
    "exists_": "SELECT id, s FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.n > t.n)",
    "not_exists": "SELECT id, s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.n = t.n AND u.f)",
    "in_query": "SELECT id FROM t WHERE n IN (SELECT n FROM u WHERE k = 1)",
    "not_in_query": "SELECT id FROM t WHERE n NOT IN (SELECT n FROM w WHERE k = 2)",
    "not_in_no_nulls": "SELECT id FROM t WHERE n NOT IN (SELECT n FROM w WHERE n IS NOT NULL)",
    "in_or": "SELECT id FROM t WHERE n IN (SELECT n FROM u WHERE k = 1) OR s = 'a'",
    "exists_uncorrelated": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM w WHERE k = 3 AND n > 25)",
    "scalar": "SELECT id, n - (SELECT max(n) FROM u) AS x FROM t",
    "scalar_where": "SELECT id FROM t WHERE n > (SELECT avg(n) FROM t)",
    "correlated_sum": "SELECT id, (SELECT sum(u.n) FROM u WHERE u.k = t.k) AS x FROM t",
    "correlated_count": "SELECT id, (SELECT count(*) FROM u WHERE u.n = t.n) AS x FROM t",
    "correlated_where": "SELECT id FROM t WHERE n >= (SELECT max(x.n) FROM t x WHERE x.k = t.k)",
    "union_all": "SELECT k, s FROM t_ WHERE n > 0 UNION ALL SELECT n, s FROM u_ UNION ALL SELECT k, s FROM e",
    "union_distinct": "SELECT k, d FROM t_ UNION SELECT n, d FROM u_",
    "except_": "SELECT k, s FROM t_ EXCEPT SELECT k, s FROM u_",
    "except_all": "SELECT k FROM t_ EXCEPT ALL SELECT k FROM u_",
    "intersect_": "SELECT k, m FROM t_ INTERSECT SELECT k, m FROM u_",
    "intersect_all": "SELECT k, f FROM t_ INTERSECT ALL SELECT k, f FROM u_",
    "distinct_": "SELECT DISTINCT k, d, s FROM t_",
    "window_number": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY n NULLS LAST, id) AS r FROM t",
    "window_rank": "SELECT id, rank() OVER (PARTITION BY k ORDER BY n DESC NULLS LAST) AS r, "
                   "dense_rank() OVER (ORDER BY s NULLS FIRST) AS q FROM t",
    "window_sums": "SELECT id, sum(n) OVER (PARTITION BY k) AS a, count(*) OVER (PARTITION BY s ORDER BY id) AS c, "
                   "lag(n) OVER (PARTITION BY f ORDER BY id) AS l FROM u",
    "latest_per_key": "SELECT k, id, s FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY ts DESC NULLS LAST, "
                      "id DESC) AS r FROM t) WHERE r = 1",
    "top_ten": "SELECT id, n FROM t ORDER BY n DESC NULLS LAST, id LIMIT 10",
    "top_offset": "SELECT id, n FROM u ORDER BY n NULLS FIRST, id LIMIT 5 OFFSET 3",
    "ctes": "WITH a AS (SELECT k, sum(n) AS sn FROM t_ GROUP BY k), b AS (SELECT max(sn) AS x FROM a) "
            "SELECT a.k AS k, a.sn AS sn FROM a JOIN b ON a.sn = b.x",
    "cte_twice": "WITH a AS (SELECT k, n FROM t_ WHERE n > 0) SELECT x.k AS k, x.n AS n, y.n AS o FROM a x JOIN a y "
                 "ON x.n = y.n AND x.k < y.k",
    "dates": "SELECT EXTRACT(year FROM dt) AS y, date_trunc('month', ts) AS mo, count(*) AS c FROM t_ GROUP BY 1, 2",
    "date_math": "SELECT id, dt + 1 AS tomorrow, dt > DATE '2024-02-29' AS later FROM t WHERE dt < DATE '9999-01-01'",
    "decimals": "SELECT id, m + 0.01 AS a, m * 2 AS b, -m AS c FROM t WHERE m < 100",
    "strings": "SELECT id, s || '!' AS a, length(s) AS l, s LIKE '%a%' AS p, trim(s) AS q, substr(s, 1, 1) AS r, "
               "replace(s, 'a', 'b') AS v FROM t",
    "constants": "SELECT 1 AS one, 'x' AS x, CAST(NULL AS INT) AS nothing",
    "values_": "SELECT t.id AS i, v.name AS name FROM t JOIN (VALUES (1, 'one'), (2, 'two')) v(k, name) ON t.k = v.k",
    "contradiction": "SELECT id, s FROM t WHERE n > 5 AND n < 3",
    "append_only": "SELECT k, n, s FROM e WHERE n > 0",
    "append_agg": "SELECT k, max(n) AS mx, count(*) AS c FROM e GROUP BY k",
    "chain_1": "SELECT k, s, count(*) AS c, sum(n) AS sn FROM t_ GROUP BY k, s",
    "chain_2": "SELECT a.k AS k, a.s AS s, a.c AS c, u.n AS n FROM chain_1 a LEFT JOIN u ON a.k = u.k AND a.c = u.n % 5",
    "chain_3": "SELECT k, max(c) AS c, count(n) AS cn FROM chain_2 GROUP BY k",
    "chain_4": "SELECT k FROM chain_3 WHERE cn > 2 UNION ALL SELECT k FROM chain_1 WHERE c > 2",
    "diamond": "SELECT x.id AS i, y.c AS c FROM filtered x JOIN chain_3 y ON x.k = y.k",
    "any_all": "SELECT id, n BETWEEN 0 AND 20 AS a, k IS DISTINCT FROM n AS b, greatest(k, n) AS g, least(k, n) AS l FROM w",
}


class Draw:
    """Random queries; each method returns (sql, [(column, type)])."""

    def __init__(self, random):
        self.r = random
        self.names = 0
        self.relations = [(s, [(c, t) for c, _, t in COLUMNS]) for s in SOURCES]

    def fresh(self):
        self.names += 1
        return "x%d" % self.names

    def column(self, columns, kind):
        found = [c for c, t in columns if t == kind]
        return self.r.choice(found) if found else None

    def literal(self, kind):
        return self.r.choice({
            "int": ["0", "1", "2", "-3", "7"], "big": ["9223372036854775807", "-1", "0"],
            "dbl": ["CAST('NaN' AS DOUBLE)", "CAST(0 AS DOUBLE)", "CAST(1.5 AS DOUBLE)"],
            "dec": ["CAST(0.10 AS DECIMAL(12,2))", "CAST(-0.01 AS DECIMAL(12,2))"],
            "str": ["''", "'a'", "'é'", "'O''Brien'"], "date": ["DATE '2024-02-29'", "DATE '1969-12-31'"],
            "ts": ["TIMESTAMP '2024-02-29 23:59:59.999999'", "TIMESTAMP '1969-12-31 00:00:00'"],
            "bool": ["TRUE", "FALSE"]}[kind])

    def expr(self, columns, kind, depth=2):
        c = self.column(columns, kind)
        if c is None or depth == 0 or self.r.random() < 0.35:
            return c or (self.literal(kind) if depth else "CAST(NULL AS %s)" % dict((t, y) for _, y, t in COLUMNS)[kind])
        pick = self.r.randrange(6)
        inner = lambda: self.expr(columns, kind, depth - 1)
        if pick == 0:
            return "CASE WHEN %s THEN %s ELSE %s END" % (self.predicate(columns, 1), inner(), inner())
        if pick == 1:
            return "COALESCE(%s, %s)" % (inner(), self.literal(kind))
        if pick == 2:
            return "NULLIF(%s, %s)" % (inner(), self.literal(kind))
        if pick == 3 and kind != "bool":
            return "CASE WHEN %s THEN %s END" % (self.predicate(columns, 1), inner())
        other = {"int": ["%s + 1" % c, "-(%s)" % c, "%s %% 3" % c], "str": ["%s || 'x'" % c, "upper(%s)" % c, "substr(%s, 1, 2)" % c],
                 "bool": ["NOT %s" % c, self.predicate(columns, 1)], "ts": ["date_trunc('day', %s)" % c],
                 "dbl": ["-%s" % c], "dec": ["-%s" % c]}.get(kind)
        return "(%s)" % self.r.choice(other) if other else c

    def predicate(self, columns, depth=2):
        if depth and self.r.random() < 0.4:
            a, b = self.predicate(columns, depth - 1), self.predicate(columns, depth - 1)
            return self.r.choice(["(%s AND %s)", "(%s OR %s)", "NOT (%s AND %s)", "(%s) IS NOT TRUE AND (%s)"]) % (a, b)
        c, kind = self.r.choice(columns)
        same = self.r.choice([x for x, t in columns if t == kind])
        forms = ["%s IS NULL" % c, "%s IS NOT NULL" % c, "%s = %s" % (c, self.literal(kind)),
                 "%s <> %s" % (c, self.literal(kind)), "%s IS DISTINCT FROM %s" % (c, same),
                 "%s >= %s" % (c, self.literal(kind)), "%s < %s" % (c, self.literal(kind)),
                 "%s <= %s" % (c, same), "%s IN (%s, %s)" % (c, self.literal(kind), self.literal(kind)),
                 "%s NOT IN (%s, NULL)" % (c, self.literal(kind))]
        if kind == "bool":
            forms += [c, "NOT %s" % c, "%s IS TRUE" % c, "%s IS NOT FALSE" % c]
        if kind == "str":
            forms += ["%s LIKE '%%a%%'" % c, "%s NOT LIKE '_'" % c, "length(%s) > 1" % c]
        return self.r.choice(forms)

    def relation(self, depth):
        if depth == 0:
            name, columns = self.r.choice(self.relations)
            return "SELECT * FROM %s" % name, list(columns)
        shapes = [self.filter, self.project, self.join, self.join, self.semi, self.aggregate, self.aggregate,
                  self.global_aggregate, self.set_operation, self.distinct, self.window, self.limit]
        return self.r.choice(shapes)(depth)

    def filter(self, depth):
        sql, columns = self.relation(depth - 1)
        return "SELECT * FROM (%s) %s WHERE %s" % (sql, self.fresh(), self.predicate(columns)), columns

    def project(self, depth):
        sql, columns = self.relation(depth - 1)
        out = []
        for _ in range(self.r.randint(2, 6)):
            kind = self.r.choice(columns)[1]
            out.append((self.expr(columns, kind), "p%d" % len(out), kind))
        return "SELECT %s FROM (%s) %s" % (", ".join("%s AS %s" % o[:2] for o in out), sql, self.fresh()), [o[1:] for o in out]

    def sides(self, depth):
        left, lc = self.relation(depth - 1)
        right, rc = self.relation(self.r.randint(0, depth - 1))
        a, b = self.fresh(), self.fresh()
        al, bl = [("%s.%s" % (a, c), t) for c, t in lc], [("%s.%s" % (b, c), t) for c, t in rc]
        pairs = [(x, y) for x, t in al for y, v in bl if t == v and t != "bool"]
        if not pairs:
            return None
        on = ["%s = %s" % pair for pair in self.r.sample(pairs, min(len(pairs), self.r.choice([1, 2, 2])))]
        if self.r.random() < 0.5:
            on.append(self.predicate(self.r.sample(al + bl, min(4, len(al + bl)))))
        return left, right, a, b, al, bl, " AND ".join(on)

    def join(self, depth):
        found = self.sides(depth)
        if found is None:
            return self.filter(depth)
        left, right, a, b, al, bl, on = found
        kind = self.r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        some = self.r.sample(al, min(3, len(al))) + self.r.sample(bl, min(3, len(bl)))
        names = ["j%d" % i for i in range(len(some))]
        sql = "SELECT %s FROM (%s) %s %s (%s) %s ON %s" % (
            ", ".join("%s AS %s" % (c, n) for (c, _), n in zip(some, names)), left, a, kind, right, b, on)
        if self.r.random() < 0.4:
            sql += " WHERE " + self.predicate(al + bl)
        return sql, [(n, t) for (_, t), n in zip(some, names)]

    def semi(self, depth):
        found = self.sides(depth)
        if found is None:
            return self.filter(depth)
        left, right, a, b, al, bl, on = found
        columns = [(c.split(".")[1], t) for c, t in al]
        if self.r.random() < 0.5:
            form = self.r.choice(["EXISTS", "NOT EXISTS"])
            return "SELECT * FROM (%s) %s WHERE %s (SELECT 1 FROM (%s) %s WHERE %s)" % (left, a, form, right, b, on), columns
        x, y = self.r.choice([(x, y) for x, t in al for y, v in bl if t == v])
        form = self.r.choice(["IN", "NOT IN"])
        where = " WHERE " + self.predicate(bl) if self.r.random() < 0.5 else ""
        return "SELECT * FROM (%s) %s WHERE %s %s (SELECT %s FROM (%s) %s%s)" % (left, a, x, form, y, right, b, where), columns

    def aggregates(self, columns):
        out = []
        for _ in range(self.r.randint(1, 4)):
            c, kind = self.r.choice(columns)
            forms = [("count(*)", "int"), ("count(%s)" % c, "int"), ("count(DISTINCT %s)" % c, "int")]
            if kind != "bool":
                forms += [("min(%s)" % c, kind), ("max(%s)" % c, kind)]
            if kind == "int":
                forms += [("sum(%s)" % c, "sum"), ("sum(DISTINCT %s)" % c, "sum"), ("avg(%s)" % c, "avg")]
            if kind == "dec":
                forms += [("sum(%s)" % c, "decsum")]
            if kind == "bool":
                forms += [("bool_and(%s)" % c, "bool"), ("bool_or(%s)" % c, "bool")]
            sql, kind = self.r.choice(forms)
            if self.r.random() < 0.3:
                sql += " FILTER (WHERE %s)" % self.predicate(columns, 1)
            # Sums and averages leave the drawing of types, so that nothing grows beyond its range.
            sql, kind = {"sum": ("CAST(%s %% 1000 AS INT)" % sql, "int"), "avg": ("%s > 3" % sql, "bool"),
                         "decsum": ("%s > 1" % sql, "bool")}.get(kind, (sql, kind))
            if kind == "int":
                sql = "CAST(%s AS INT)" % sql
            out.append((sql, "a%d" % len(out), kind))
        return out

    def aggregate(self, depth):
        sql, columns = self.relation(depth - 1)
        keys = [(c, "g%d" % i, t) for i, (c, t) in enumerate(self.r.sample(columns, min(len(columns), self.r.choice([1, 1, 2]))))]
        out = self.aggregates(columns)
        text = "SELECT %s FROM (%s) %s GROUP BY %s" % (
            ", ".join("%s AS %s" % o[:2] for o in keys + out), sql, self.fresh(), ", ".join(c for c, _, _ in keys))
        if self.r.random() < 0.3:
            text += " HAVING count(*) %s %d" % (self.r.choice([">", "<"]), self.r.randint(1, 6))
        return text, [o[1:] for o in keys + out]

    def global_aggregate(self, depth):
        sql, columns = self.relation(depth - 1)
        out = self.aggregates(columns)
        return "SELECT %s FROM (%s) %s" % (", ".join("%s AS %s" % o[:2] for o in out), sql, self.fresh()), [o[1:] for o in out]

    def set_operation(self, depth):
        left, lc = self.relation(depth - 1)
        right, rc = self.relation(self.r.randint(0, depth - 1))
        kinds = [t for _, t in lc if t in {t for _, t in rc}]
        if not kinds:
            return self.filter(depth)
        kinds = self.r.sample(kinds, min(len(kinds), 3))
        side = lambda sql, cs: "SELECT %s FROM (%s) %s" % (
            ", ".join("%s AS o%d" % (self.column(cs, t), i) for i, t in enumerate(kinds)), sql, self.fresh())
        op = self.r.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
        return "%s %s %s" % (side(left, lc), op, side(right, rc)), [("o%d" % i, t) for i, t in enumerate(kinds)]

    def distinct(self, depth):
        sql, columns = self.relation(depth - 1)
        some = self.r.sample(columns, min(3, len(columns)))
        return "SELECT DISTINCT %s FROM (%s) %s" % (", ".join(c for c, _ in some), sql, self.fresh()), some

    def order(self, columns, first=None):
        rest = self.r.sample(columns, len(columns)) if first is None else columns
        return ", ".join("%s %s NULLS %s" % (c, self.r.choice(["ASC", "DESC"]), self.r.choice(["FIRST", "LAST"])) for c, _ in rest)

    def window(self, depth):
        sql, columns = self.relation(depth - 1)
        part = self.r.choice(columns)[0]
        form = self.r.choice(["row_number() OVER (PARTITION BY %s ORDER BY %s)" % (part, self.order(columns)),
                              "rank() OVER (PARTITION BY %s ORDER BY %s)" % (part, self.order(columns[:1], 1)),
                              "count(*) OVER (PARTITION BY %s)" % part])
        return "SELECT *, CAST(%s AS INT) AS r%d FROM (%s) %s" % (form, self.names, sql, self.fresh()), \
            columns + [("r%d" % (self.names - 1), "int")]

    def limit(self, depth):
        sql, columns = self.relation(depth - 1)
        return "SELECT * FROM (%s) %s ORDER BY %s LIMIT %d" % (sql, self.fresh(), self.order(columns), self.r.randint(1, 12)), columns
