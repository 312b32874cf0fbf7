CREATE OR REFRESH MATERIALIZED VIEW delays_by_carrier_day
COMMENT 'How late each airline was on each day'
AS SELECT
  f.carrier, a.name AS airline, f.year, f.month, f.day,
  count(*) AS flights,
  count(*) - count(f.dep_time) AS cancelled,
  avg(f.dep_delay) AS mean_dep_delay,
  avg(f.arr_delay) AS mean_arr_delay,
  max(f.arr_delay) AS max_arr_delay,
  min(f.arr_delay) AS min_arr_delay
FROM flights AS f LEFT JOIN airlines AS a ON f.carrier = a.carrier
GROUP BY f.carrier, a.name, f.year, f.month, f.day;

CREATE OR REFRESH MATERIALIZED VIEW routes
COMMENT 'Every route with its delays'
AS SELECT
  f.origin, f.dest, p.name AS airport,
  count(f.arr_delay) AS arrivals,
  avg(f.arr_delay) AS mean_arr_delay,
  sum(f.distance) AS miles
FROM flights AS f LEFT JOIN airports AS p ON f.dest = p.faa
GROUP BY f.origin, f.dest, p.name;

CREATE OR REFRESH MATERIALIZED VIEW worst_routes
COMMENT 'The ten routes with the longest mean delay on arrival'
AS SELECT origin, dest, airport, arrivals, mean_arr_delay
FROM routes
WHERE arrivals >= 50
ORDER BY mean_arr_delay DESC, origin, dest
LIMIT 10;

CREATE OR REFRESH MATERIALIZED VIEW plane_age_delay
COMMENT 'Delay on departure by the age of the plane'
AS SELECT
  f.year - p.year AS age,
  count(*) AS flights,
  count(DISTINCT f.tailnum) AS planes,
  avg(f.dep_delay) AS mean_dep_delay
FROM flights AS f JOIN planes AS p ON f.tailnum = p.tailnum
WHERE p.year IS NOT NULL
GROUP BY f.year - p.year;

CREATE OR REFRESH MATERIALIZED VIEW weather_delay
COMMENT 'Delay on departure by visibility at the origin'
AS SELECT
  f.origin,
  CASE
    WHEN w.visib IS NULL THEN 'unknown'
    WHEN w.visib < 1 THEN 'below 1 mile'
    WHEN w.visib < 5 THEN '1 to 5 miles'
    ELSE 'above 5 miles'
  END AS visibility,
  count(*) AS flights,
  avg(f.dep_delay) AS mean_dep_delay,
  avg(w.wind_speed) AS mean_wind_speed,
  sum(w.precip) AS precip
FROM flights AS f
LEFT JOIN weather AS w ON f.origin = w.origin AND f.time_hour = w.time_hour
GROUP BY f.origin,
  CASE
    WHEN w.visib IS NULL THEN 'unknown'
    WHEN w.visib < 1 THEN 'below 1 mile'
    WHEN w.visib < 5 THEN '1 to 5 miles'
    ELSE 'above 5 miles'
  END;

CREATE OR REFRESH MATERIALIZED VIEW destinations_without_airport
COMMENT 'Destinations that the register of airports does not know'
AS SELECT DISTINCT f.dest
FROM flights AS f
WHERE NOT EXISTS (SELECT 1 FROM airports AS p WHERE p.faa = f.dest);
