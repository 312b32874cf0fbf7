"""The views in SQL, and what is known of them."""

DAY = 86_400_000_000
WORKLOADS = ["w1lin", "w1", "w2", "w3", "w5", "w6", "epochs", "idle"]
QUERIES = {
    "w1lin": "SELECT customer_id, count(*) AS n, sum(amount) AS s FROM {orders} GROUP BY 1",
    "w1": "SELECT customer_id, count(*) AS n, sum(amount) AS s, min(amount) AS lo, max(amount) AS hi FROM {orders} GROUP BY 1",
    "w2": f"SELECT epoch_us(ts) // {DAY} AS day, tier, count(*) AS n, sum(amount) AS s"
    " FROM {orders} LEFT JOIN {customers} USING (customer_id) GROUP BY 1, 2",
    "w3": "SELECT l_orderkey, sum(l_extendedprice * (100 - l_discount)) AS revenue, o_orderdate, o_shippriority"
    " FROM {tpch_customer} JOIN {tpch_orders} ON c_custkey = o_custkey JOIN {tpch_lineitem} ON l_orderkey = o_orderkey"
    " WHERE c_mktsegment = 'BUILDING' AND o_orderdate < 9204 AND l_shipdate > 9204"
    " GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10",
    "w5": f"SELECT epoch_us(ts) // {DAY} AS day, count(DISTINCT customer_id) AS n FROM {{orders}} GROUP BY 1",
    "w6": "SELECT customer_id, amount, order_id, row_number() OVER (PARTITION BY customer_id ORDER BY amount DESC, order_id) AS place"
    " FROM {orders} QUALIFY place <= 3",
}
# Deltas in a row, each of so many per cent of the rows, and how many of each.
DELTAS = {"0.01": 20, "0.1": 10, "1": 5, "10": 3}
# Per cent of the rows in deltas that come alone.
SHARES = [20, 30, 50]
# Columns whose sum, each times a factor, is the checksum.
HASHED = {
    "w1lin": ("customer_id", "n", "s"),
    "w1": ("customer_id", "n", "s", "lo", "hi"),
    "w2": ("day * 16 + coalesce(tier, -1)", "n", "s"),
    "w3": ("l_orderkey", "revenue", "o_orderdate", "o_shippriority"),
    "w5": ("day", "n"),
    "w6": ("customer_id", "place", "amount", "order_id"),
}
# Where it is not orders alone.
TABLES = {"w2": ("orders", "customers"), "w3": ("tpch_customer", "tpch_orders", "tpch_lineitem")}
TITLES = {
    "w1lin": "W1lin: count and sum per customer",
    "w1": "W1: count, sum, minimum and maximum per customer",
    "w2": "W2: orders LEFT JOIN customers; count and sum per day and tier",
    "w3": "W3: like TPC-H Q3, three tables joined; the ten orders of most revenue",
    "w5": "W5: different customers per day",
    "w6": "W6: the three largest orders of each customer, numbered",
    "epochs": "Epochs: a filter, then count and sum per customer; a row at a time",
    "idle": "Idle: ten filters and ten DISTINCTs in a row over the first 100,000 orders",
}
