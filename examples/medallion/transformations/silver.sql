-- Silver: one row per version of a customer and of an order (slowly changing dimension, type 2).
-- Events may be late, repeated or out of order: the log sequence number decides, not the arrival.

CREATE OR REFRESH STREAMING TABLE customers (
  CONSTRAINT known_tier EXPECT (tier IN ('bronze', 'silver', 'gold')) ON VIOLATION DROP ROW
)
COMMENT 'History of every customer';

CREATE FLOW customers_history AS AUTO CDC INTO customers
FROM (
  SELECT
    coalesce(after.customer_id, before.customer_id) AS customer_id,
    coalesce(after.name, before.name) AS name,
    coalesce(after.tier, before.tier) AS tier,
    op, lsn
  FROM STREAM(customers_bronze)
)
KEYS (customer_id)
APPLY AS DELETE WHEN op = 'd'
SEQUENCE BY lsn
COLUMNS * EXCEPT (op, lsn)
STORED AS SCD TYPE 2;

CREATE OR REFRESH STREAMING TABLE orders (
  CONSTRAINT positive_amount EXPECT (amount > 0) ON VIOLATION DROP ROW,
  CONSTRAINT has_customer EXPECT (customer_id IS NOT NULL)
)
COMMENT 'History of every order';

CREATE FLOW orders_history AS AUTO CDC INTO orders
FROM (
  SELECT
    coalesce(after.order_id, before.order_id) AS order_id,
    coalesce(after.customer_id, before.customer_id) AS customer_id,
    coalesce(after.order_date, before.order_date) AS order_date,
    coalesce(after.status, before.status) AS status,
    coalesce(after.amount, before.amount) AS amount,
    op, lsn
  FROM STREAM(orders_bronze)
)
KEYS (order_id)
APPLY AS DELETE WHEN op = 'd'
SEQUENCE BY lsn
COLUMNS * EXCEPT (op, lsn)
STORED AS SCD TYPE 2;
