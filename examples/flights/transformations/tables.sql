-- All 336,776 flights that left New York City in 2013, landed month by month, with the weather at
-- the origin and the registers of planes, airlines and airports. NA stands for a missing value.

CREATE OR REFRESH STREAMING TABLE flights AS
SELECT * FROM STREAM read_files('landing/flights', format => 'csv', header => true, nullValue => 'NA', schema => '
  year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING,
  origin STRING, dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP');

CREATE OR REFRESH STREAMING TABLE weather AS
SELECT * FROM STREAM read_files('landing/weather', format => 'csv', header => true, nullValue => 'NA', schema => '
  origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE,
  wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE,
  time_hour TIMESTAMP');

CREATE OR REFRESH STREAMING TABLE planes AS
SELECT * FROM STREAM read_files('landing/planes', format => 'csv', header => true, nullValue => 'NA', schema => '
  tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT,
  speed INT, engine STRING');

CREATE OR REFRESH STREAMING TABLE airlines AS
SELECT * FROM STREAM read_files('landing/airlines', format => 'csv', header => true, schema => 'carrier STRING, name STRING');

CREATE OR REFRESH STREAMING TABLE airports AS
SELECT * FROM STREAM read_files('landing/airports', format => 'csv', header => true, schema => '
  faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING');
