-- Bronze: the change events of the shop's database, exactly as they were landed.
-- Every file under landing/ is read once; a run without new files does nothing.

CREATE OR REFRESH STREAMING TABLE customers_bronze
COMMENT 'Change events of the customers table'
AS SELECT *
FROM STREAM read_files('landing/customers', format => 'json', schema => '
  op STRING, lsn BIGINT, ts TIMESTAMP_NTZ,
  before STRUCT<customer_id: BIGINT, name: STRING, tier: STRING>,
  after  STRUCT<customer_id: BIGINT, name: STRING, tier: STRING>');

CREATE OR REFRESH STREAMING TABLE orders_bronze
COMMENT 'Change events of the orders table'
AS SELECT *
FROM STREAM read_files('landing/orders', format => 'json', schema => '
  op STRING, lsn BIGINT, ts TIMESTAMP_NTZ,
  before STRUCT<order_id: BIGINT, customer_id: BIGINT, order_date: DATE, status: STRING, amount: DECIMAL(10,2)>,
  after  STRUCT<order_id: BIGINT, customer_id: BIGINT, order_date: DATE, status: STRING, amount: DECIMAL(10,2)>');
