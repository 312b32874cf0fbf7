//! Names, types, functions, expressions, batch runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch,
};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int64Type, Schema};
use deltaic_batch::ZBatch;

use super::{session, sources};
use crate::{Session, SessionOptions, Source, Sources};

fn names(sql: &str) -> Vec<String> {
    let sources = sources(&[("orders", "Id INT, `Order Date` DATE, Amount DOUBLE")]);
    let schema = session().query_schema(sql, &sources).unwrap_or_else(|e| panic!("{sql}: {e}"));
    schema.fields().iter().map(|f| f.name().clone()).collect()
}

#[test]
fn names_keep_the_spelling_of_their_definition() {
    assert_eq!(names("SELECT * FROM ORDERS"), ["Id", "Order Date", "Amount"]);
    assert_eq!(
        names("SELECT ID, \"order date\", `ORDER DATE` AS OD FROM orders"),
        ["Id", "Order Date", "OD"]
    );
    assert_eq!(names("SELECT Total FROM (SELECT sum(amount) AS ToTal FROM orders) t"), ["ToTal"]);
    assert_eq!(
        names("WITH c(A, B) AS (SELECT id, amount FROM orders) SELECT * FROM C"),
        ["A", "B"]
    );
    assert_eq!(names("SELECT o.ID FROM orders O WHERE o.AMOUNT > 1"), ["Id"]);
    assert_eq!(names("SELECT id FROM orders UNION ALL SELECT 1"), ["Id"]);
}

#[test]
fn columns_of_one_name_are_fine_where_names_have_no_meaning() {
    assert_eq!(
        names("SELECT * FROM (SELECT id, id + 1 AS id, 7, 7 FROM orders) AS v(a, b, c, d)"),
        ["a", "b", "c", "d"]
    );
    assert_eq!(names("WITH v(a, b) AS (SELECT id, id FROM orders) SELECT b FROM v"), ["b"]);
    assert_eq!(
        names("SELECT id, amount FROM orders UNION ALL SELECT 1 AS x, 2 AS x"),
        ["Id", "Amount"]
    );
    assert_eq!(names("SELECT id FROM orders WHERE EXISTS (SELECT 1, 1)"), ["Id"]);
    let sources = sources(&[("orders", "Id INT")]);
    let error = session().query_schema("SELECT id, id FROM orders", &sources).unwrap_err();
    assert_eq!(error.code(), "COLUMN_ALREADY_EXISTS");
}

#[test]
fn views_are_inlined() {
    let mut sources = sources(&[("t", "A INT")]);
    sources.insert("v".into(), Source::View { sql: "SELECT a AS `Bee` FROM t".into() });
    sources.insert("w".into(), Source::View { sql: "SELECT bee + 1 AS c, BEE FROM v".into() });
    let plan = session().plan_view("SELECT * FROM w", &sources).unwrap();
    assert_eq!(plan.schema().field(1).name(), "Bee");
    assert_eq!(plan.sources(), ["t"]);
}

#[test]
fn type_names_are_sparks() {
    let sources = sources(&[]);
    let schema = session()
        .query_schema(
            "SELECT CAST('2024-01-01' AS TIMESTAMP) AS a, CAST('2024-01-01' AS TIMESTAMP_NTZ) AS b,
                    CAST(1 AS BIGINT) AS c, CAST(1 AS STRING) AS d, CAST(1 AS DECIMAL(10,2)) AS e,
                    'x' AS f, to_timestamp(1.5) AS g",
            &sources,
        )
        .unwrap();
    let types: Vec<String> = schema.fields().iter().map(|f| f.data_type().to_string()).collect();
    assert_eq!(
        types,
        [
            "Timestamp(µs, \"UTC\")",
            "Timestamp(µs)",
            "Int64",
            "Utf8",
            "Decimal128(10, 2)",
            "Utf8",
            "Timestamp(µs, \"UTC\")"
        ]
    );
}

fn single(sql: &str) -> deltaic_batch::Result<RecordBatch> {
    let (_, batches) = session().run_batch(sql, &sources(&[]), BTreeMap::new())?;
    Ok(batches.into_iter().next().unwrap())
}

#[test]
fn arithmetic_fails_instead_of_wrapping() {
    for (sql, code) in [
        (
            "SELECT CAST(9223372036854775807 AS BIGINT) + x AS y FROM (VALUES (1)) t(x)",
            "ARITHMETIC_OVERFLOW",
        ),
        ("SELECT 9223372036854775807 + 1 AS y", "ARITHMETIC_OVERFLOW"),
        ("SELECT x * 3037000500 AS y FROM (VALUES (3037000500)) t(x)", "ARITHMETIC_OVERFLOW"),
        (
            "SELECT x + 1 AS y FROM (VALUES (CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)))) t(x)",
            "ARITHMETIC_OVERFLOW",
        ),
        (
            "SELECT x * y AS z FROM (VALUES (CAST('50000000000000000000000000000000000000' AS DECIMAL(38,0)), CAST(3 AS DECIMAL(5,0)))) t(x, y)",
            "ARITHMETIC_OVERFLOW",
        ),
        ("SELECT 1 / x AS y FROM (VALUES (0)) t(x)", "DIVIDE_BY_ZERO"),
        ("SELECT 1.5 / x AS y FROM (VALUES (0.0)) t(x)", "DIVIDE_BY_ZERO"),
        ("SELECT CAST(x AS INT) AS y FROM (VALUES ('a')) t(x)", "CAST_INVALID_INPUT"),
        (
            "SELECT -x AS y FROM (VALUES (CAST(-9223372036854775808 AS BIGINT))) t(x)",
            "ARITHMETIC_OVERFLOW",
        ),
    ] {
        let error = single(sql).map(|b| panic!("{sql}: {b:?}")).unwrap_err();
        assert_eq!(error.code(), code, "{sql}: {error}");
    }
    let null = single("SELECT TRY_CAST(x AS INT) AS y FROM (VALUES ('a')) t(x)").unwrap();
    assert_eq!(null.column(0).null_count(), 1);
    let fraction = single("SELECT avg(x) AS y FROM (VALUES (1), (2)) t(x)").unwrap();
    assert_eq!(fraction.column(0).as_primitive::<arrow::datatypes::Float64Type>().value(0), 1.5);
}

#[test]
fn the_first_of_each_by_an_aggregate() {
    let first = single(
        "SELECT DISTINCT ON (a) a, b, sum(c) AS total
         FROM (VALUES ('x', 1, 10), ('x', 1, 20), ('x', 2, 40)) t(a, b, c)
         GROUP BY a, b ORDER BY a, total DESC",
    );
    let first = first.unwrap();
    assert_eq!(first.num_rows(), 1);
    assert_eq!(first.column(2).as_primitive::<Int64Type>().value(0), 40);
}

#[test]
fn negative_zero_is_counted_as_zero() {
    let count = single("SELECT count(DISTINCT x) AS n FROM (VALUES (0.0), (-0.0), (1.5)) t(x)");
    assert_eq!(count.unwrap().column(0).as_primitive::<Int64Type>().value(0), 2);
}

#[test]
fn expressions_bind_without_regard_to_case() {
    let schema = Arc::new(Schema::new(vec![Field::new("Amount", DataType::Int32, true)]));
    let typed = session().expression("amount > 1 AND AMOUNT + 1 < 5", &schema).unwrap();
    assert_eq!(typed.field.data_type(), &DataType::Boolean);
    let rows = Int32Array::from(vec![Some(0), Some(2), None, Some(9)]);
    let batch = RecordBatch::try_new(schema, vec![Arc::new(rows)]).unwrap();
    let values = typed.evaluator.evaluate(&batch).unwrap();
    let expected = BooleanArray::from(vec![Some(false), Some(true), None, Some(false)]);
    assert_eq!(values.as_boolean(), &expected);
}

#[test]
fn the_clock_is_that_of_the_session() {
    let session =
        Session::try_new(SessionOptions { time_zone: "UTC".into(), now_us: Some(1_000_000) })
            .unwrap();
    let (_, batches) = session
        .run_batch("SELECT CAST(now() AS STRING) AS t", &sources(&[]), BTreeMap::new())
        .unwrap();
    let text = batches[0].column(0).as_string::<i32>().value(0).to_owned();
    assert!(text.starts_with("1970-01-01T00:00:01"), "{text}");
}

#[test]
fn sparks_functions_are_there() {
    let batch =
        single("SELECT date_add(DATE '2024-01-01', 2) AS d, url_decode('a%20b') AS u").unwrap();
    assert_eq!(batch.column(1).as_string::<i32>().value(0), "a b");
}

#[test]
fn struct_fields_match_without_regard_to_case() {
    let sources = sources(&[("t", "S STRUCT<Aa: INT, b: STRUCT<Cc: STRING>>")]);
    let sql = "SELECT s.aa + 1 AS x, T.S.B.CC AS y, s['AA'] AS z FROM t";
    let schema = session().query_schema(sql, &sources).unwrap();
    let types: Vec<String> = schema.fields().iter().map(|f| f.data_type().to_string()).collect();
    assert_eq!(types, ["Int64", "Utf8", "Int32"]);
}

#[test]
fn sums_fail_instead_of_wrapping() {
    let wide = "(VALUES (CAST('9.9' AS DECIMAL(38,37))), (CAST('9.8' AS DECIMAL(38,37)))) t(x)";
    for sql in [
        &format!("SELECT sum(x) AS s FROM {wide}"),
        &format!("SELECT sum(DISTINCT x) AS s FROM {wide}"),
        &format!("SELECT sum(x) OVER () AS s FROM {wide}"),
        "SELECT sum(x) AS s FROM (VALUES (9223372036854775807), (1)) t(x)",
        "SELECT sum(x) OVER () AS s FROM (VALUES (9223372036854775807), (1)) t(x)",
    ] {
        let error = single(sql).map(|b| panic!("{sql}: {b:?}")).unwrap_err();
        assert_eq!(error.class(), deltaic_batch::ErrorClass::Data, "{sql}: {error}");
    }
    let fits =
        single("SELECT sum(x) AS s FROM (VALUES (9223372036854775807), (1), (-2)) t(x)").unwrap();
    assert_eq!(fits.column(0).as_primitive::<arrow::datatypes::Int64Type>().value(0), i64::MAX - 1);
}

#[test]
fn time_zones_in_both_directions() {
    let batch = single(
        "SELECT CAST(CAST('2024-11-03 05:30:00Z' AS TIMESTAMP) AT TIME ZONE 'America/New_York' AS STRING) AS a,
                CAST(CAST('2024-11-03 01:30:00' AS TIMESTAMP_NTZ) AT TIME ZONE 'Europe/Berlin' AS STRING) AS b",
    )
    .unwrap();
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "2024-11-03T01:30:00");
    assert_eq!(batch.column(1).as_string::<i32>().value(0), "2024-11-03T00:30:00Z");
}

#[test]
fn ranks_counts_and_lengths_are_bigints() {
    let sources = sources(&[("t", "a INT, x ARRAY<INT>")]);
    let calls = [
        "row_number() OVER (ORDER BY a)",
        "row_number() OVER (ORDER BY a) + 3",
        "rank() OVER (ORDER BY a) * 2",
        "dense_rank() OVER (ORDER BY a)",
        "ntile(2) OVER (ORDER BY a)",
        "approx_distinct(a)",
        "approx_distinct(a) OVER () + 1",
        "regr_count(a, a)",
        "array_length(x)",
        "list_length(x) + 1",
        "array_position(x, 1)",
        "cardinality(x)",
    ];
    for call in calls {
        let sql = format!("SELECT {call} AS y FROM t");
        let schema = session().query_schema(&sql, &sources).unwrap();
        assert_eq!(schema.field(0).data_type(), &DataType::Int64, "{call}");
        assert_eq!(session().plan_view(&sql, &sources).unwrap().schema(), schema, "{call}");
    }
    let batch = single(
        "SELECT array_position(x, 7) + 1 AS p, array_dims(x)[1] + 1 AS d, cardinality([1, 2]) AS c
         FROM (VALUES ([5, 7, 9])) t(x)",
    )
    .unwrap();
    let value = |i| batch.column(i).as_primitive::<arrow::datatypes::Int64Type>().value(0);
    assert_eq!([value(0), value(1), value(2)], [3, 4, 2]);
}

#[test]
fn averages_have_room_for_their_values() {
    let values = "(VALUES (CAST('9.9' AS DECIMAL(38,37))), (CAST('9.8' AS DECIMAL(38,37)))) t(x)";
    for call in ["avg(x)", "mean(x)", "avg(DISTINCT x)", "avg(x) OVER ()"] {
        let batch = single(&format!("SELECT CAST({call} AS STRING) AS y FROM {values}")).unwrap();
        let text = batch.column(0).as_string::<i32>().value(0);
        assert!(text.starts_with("9.850000"), "{call}: {text}");
    }
}

#[test]
fn nothing_is_unsigned() {
    let schema = session()
        .query_schema(
            "SELECT 9223372036854775808 AS a, -9223372036854775809 AS b, -9223372036854775808 AS c",
            &sources(&[]),
        )
        .unwrap();
    let types: Vec<String> = schema.fields().iter().map(|f| f.data_type().to_string()).collect();
    assert_eq!(types, ["Decimal128(19, 0)", "Decimal128(19, 0)", "Int64"]);
    let error = single("SELECT CAST(1 AS INT UNSIGNED) AS x").unwrap_err();
    assert!(error.message().contains("signed"), "{error}");
}

#[test]
fn a_condition_on_one_side_of_a_join_leaves_columns_of_the_same_name_alone() {
    let sources = sources(&[("u", "k BIGINT, v BIGINT")]);
    let column = |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let u = RecordBatch::try_from_iter([("k", column(&[2, 5])), ("v", column(&[1, 1]))]).unwrap();
    let ranked = "SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM u";
    // The side with a condition of its own is thought to be smaller, and the sides change places.
    let first = format!("SELECT k, n FROM ({ranked}) WHERE n > 0 AND n <= 1");
    for (left, join, right) in [(ranked, "RIGHT", &*first), (&*first, "LEFT", ranked)] {
        let (padded, kept) = if join == "RIGHT" { ("l", "r") } else { ("r", "l") };
        let sql = format!(
            "SELECT a FROM (SELECT {kept}.k AS a, {padded}.k AS b FROM ({left}) l {join} JOIN \
             ({right}) r ON {padded}.n = {kept}.k) WHERE a >= a AND b IS NULL"
        );
        let tables = BTreeMap::from([("u".to_owned(), vec![u.clone()])]);
        let (_, batches) = session().run_batch(&sql, &sources, tables).unwrap();
        let mut rows: Vec<i64> = (batches.iter())
            .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        rows.sort_unstable();
        assert_eq!(rows, [2, 5], "{sql}");
    }
}

#[test]
fn aggregates_of_floats_do_not_depend_on_the_order_of_the_rows() {
    let sources = sources(&[("t", "k BIGINT, x DOUBLE, y FLOAT")]);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let narrow = |values: &[f64]| -> ArrayRef {
        let wide = Float64Array::from(values.to_vec());
        arrow::compute::cast(&wide, &DataType::Float32).unwrap()
    };
    let cases: [(&[f64], [f64; 5]); 6] = [
        // Values; MIN, MAX, SUM, AVG, SUM of distinct values.
        (&[1e16, 1.0, -1e16, 1.0], [-1e16, 1e16, 2.0, 0.5, 1.0]),
        (&[nan, 1.0], [1.0, nan, nan, nan, nan]),
        (&[nan, nan], [nan, nan, nan, nan, nan]),
        (&[inf, inf], [inf, inf, inf, inf, inf]),
        (&[-inf, -inf], [-inf, -inf, -inf, -inf, -inf]),
        (&[-0.0, 0.0, -0.0], [0.0, 0.0, 0.0, 0.0, 0.0]),
    ];
    for (values, wanted) in cases {
        for reversed in [false, true] {
            let mut values = values.to_vec();
            if reversed {
                values.reverse();
            }
            let t = RecordBatch::try_from_iter([
                ("k", Arc::new(Int64Array::from(vec![1; values.len()])) as ArrayRef),
                ("x", Arc::new(Float64Array::from(values.clone()))),
                ("y", narrow(&values)),
            ])
            .unwrap();
            let calls = "min(x), max(x), sum(x), avg(x), sum(DISTINCT x)";
            let over = "min(x) OVER w, max(x) OVER w, sum(x) OVER w, avg(x) OVER w, \
                        (SELECT sum(DISTINCT x) FROM t)";
            for sql in [
                format!("SELECT {calls} FROM t"),
                format!("SELECT {calls} FROM t GROUP BY k"),
                format!("SELECT DISTINCT {over} FROM t WINDOW w AS (PARTITION BY k)"),
            ] {
                let tables = BTreeMap::from([(
                    "t".to_owned(),
                    vec![t.slice(0, 1), t.slice(1, t.num_rows() - 1)],
                )]);
                let (_, batches) = session().run_batch(&sql, &sources, tables).unwrap();
                let rows = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
                assert_eq!(rows.num_rows(), 1, "{sql}");
                for (column, wanted) in rows.columns().iter().zip(wanted) {
                    let found = column.as_primitive::<Float64Type>().value(0);
                    assert_eq!(found.to_bits(), wanted.to_bits(), "{sql} of {values:?}: {found}");
                }
            }
            let tables = BTreeMap::from([("t".to_owned(), vec![t])]);
            let sql = "SELECT min(y), max(y) FROM t GROUP BY k";
            let (_, batches) = session().run_batch(sql, &sources, tables).unwrap();
            for (column, wanted) in batches[0].columns().iter().zip(wanted) {
                let found = column.as_primitive::<Float32Type>().value(0);
                let wanted = narrow(&[wanted]).as_primitive::<Float32Type>().value(0);
                assert_eq!(found.to_bits(), wanted.to_bits(), "{sql} of {values:?}");
            }
        }
    }
}

#[test]
fn a_moving_sum_of_floats_is_that_of_its_rows() {
    let sources = sources(&[("t", "k BIGINT, x DOUBLE")]);
    let values = [1e300, 0.1, f64::NAN, 0.2, 0.3, f64::INFINITY, 0.5, 0.5];
    let t = RecordBatch::try_from_iter([
        ("k", Arc::new(Int64Array::from_iter_values(0..8)) as ArrayRef),
        ("x", Arc::new(Float64Array::from(values.to_vec()))),
    ])
    .unwrap();
    let tables = BTreeMap::from([("t".to_owned(), vec![t])]);
    let frame = "(ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let sql = format!("SELECT k, sum(x) OVER {frame}, max(x) OVER {frame} FROM t ORDER BY k");
    let (_, batches) = session().run_batch(&sql, &sources, tables).unwrap();
    let rows = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
    let column = |i: usize| rows.column(i).as_primitive::<Float64Type>().values().to_vec();
    let (sums, greatest) = (column(1), column(2));
    for i in 0..values.len() {
        let (before, value) = (if i == 0 { 0.0 } else { values[i - 1] }, values[i]);
        let sum = if (before + value).is_nan() { f64::NAN } else { before + value };
        assert_eq!(sums[i].to_bits(), sum.to_bits(), "row {i}");
        let max =
            if before.is_nan() { before } else { value.max(if i == 0 { value } else { before }) };
        let max = if value.is_nan() { value } else { max };
        assert_eq!(greatest[i].to_bits(), max.to_bits(), "row {i}");
    }
}

#[test]
fn a_condition_that_is_never_true_leaves_nothing_of_a_total() {
    let sources = sources(&[("u", "k BIGINT")]);
    let u = RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    let u = u.unwrap();
    for condition in ["a = 1 AND a <> 1 AND b = 2", "a = 1 AND b = 2 AND a <> 1", "a = 1 AND a = 2"]
    {
        let totals = "SELECT count(*) AS a, count(*) AS b FROM u";
        let sql = format!("SELECT a FROM ({totals}) WHERE {condition}");
        let mut view = super::Checked::new(&[("u", "k BIGINT")], &sql);
        let delta = view.step(&[("u", "+ 1")]).unwrap();
        assert!(delta.is_empty(), "{sql} as a view: {delta:?}");
        let tables = BTreeMap::from([("u".to_owned(), vec![u.clone()])]);
        let (_, batches) = session().run_batch(&sql, &sources, tables).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0, "{sql}");
    }
}

#[test]
fn what_is_constant_below_an_outer_join_is_not_above_it() {
    let sources = sources(&[("u", "k BIGINT")]);
    let column = |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let u = RecordBatch::try_from_iter([("k", column(&[3, 4, 6, 1]))]).unwrap();
    let total = "(SELECT min(k) + 2 AS c FROM u)";
    let literal = "(SELECT DISTINCT 3 AS c FROM u)";
    for padded in [total, literal] {
        for from in [
            format!("{padded} l RIGHT JOIN u ON l.c = u.k"),
            format!("u LEFT JOIN {padded} l ON l.c = u.k"),
            format!("u FULL JOIN {padded} l ON l.c = u.k"),
        ] {
            let sorted = format!("SELECT c, k FROM {from} ORDER BY c NULLS FIRST, k");
            let limited = format!("SELECT c, k FROM ({sorted} LIMIT 3) ORDER BY c NULLS FIRST, k");
            let numbered = format!(
                "SELECT c, k FROM (SELECT c, k, row_number() OVER (ORDER BY c NULLS FIRST, k) AS n FROM {from}) ORDER BY n"
            );
            for (sql, kept) in [(sorted, 4), (limited, 3), (numbered, 4)] {
                let tables = BTreeMap::from([("u".to_owned(), vec![u.clone()])]);
                let (schema, batches) = session().run_batch(&sql, &sources, tables).unwrap();
                let rows = arrow::compute::concat_batches(&schema, &batches).unwrap();
                let column = |i: usize| {
                    rows.column(i).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
                };
                assert_eq!(column(1), [Some(1), Some(4), Some(6), Some(3)][..kept], "{sql}");
                assert_eq!(column(0), [None, None, None, Some(3)][..kept], "{sql}");
            }
        }
    }
}

#[test]
fn a_union_of_equal_columns_and_others_can_be_sorted() {
    let sources = sources(&[("u", "k BIGINT, v BIGINT")]);
    let column = |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let u = RecordBatch::try_from_iter([("k", column(&[2, 1])), ("v", column(&[7, 8]))]).unwrap();
    let union = "SELECT count(*) AS a, count(*) AS b, count(*) AS c FROM u UNION ALL \
                 SELECT l.k, l.v, r.k FROM u l JOIN u r ON l.k = r.k";
    for sql in [
        format!("SELECT a, b, c FROM ({union}) ORDER BY a, b, c"),
        format!(
            "SELECT a, b, c FROM (SELECT *, row_number() OVER (ORDER BY a, b, c) AS n FROM ({union})) \
             ORDER BY n"
        ),
        format!("SELECT a, b, c FROM ({union}) ORDER BY a, b, c LIMIT 3"),
    ] {
        let tables = BTreeMap::from([("u".to_owned(), vec![u.clone()])]);
        let (schema, batches) = session().run_batch(&sql, &sources, tables).unwrap();
        let rows = arrow::compute::concat_batches(&schema, &batches).unwrap();
        let column = |i: usize| rows.column(i).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!((column(0), column(1)), (vec![1, 2, 2], vec![8, 2, 7]), "{sql}");
        assert_eq!(column(2), [1, 2, 2], "{sql}");
    }
}

#[test]
fn what_a_condition_rules_out_need_not_be_null() {
    let sources = sources(&[("u", "k BIGINT, v BIGINT")]);
    let column =
        |values: &[Option<i64>]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let (k, v) = (column(&[Some(5), None, Some(6)]), column(&[Some(5), None, Some(7)]));
    let u = RecordBatch::try_from_iter([("k", k), ("v", v)]).unwrap();
    let grouped = "SELECT k, v, count(*) AS n FROM u GROUP BY k, v";
    let sql = format!("SELECT DISTINCT CASE WHEN k = v THEN k ELSE n END AS c FROM ({grouped})");
    let tables = BTreeMap::from([("u".to_owned(), vec![u])]);
    let (schema, batches) = session().run_batch(&sql, &sources, tables).unwrap();
    let rows = arrow::compute::concat_batches(&schema, &batches).unwrap();
    let mut values = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
    values.sort_unstable();
    assert_eq!(values, [1, 5]);
}

#[test]
fn nothing_is_counted_of_no_rows() {
    let sources = sources(&[("t", "k BIGINT")]);
    let t = RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    let t = t.unwrap();
    let ranked = "(SELECT k, row_number() OVER (ORDER BY k) AS n FROM t) WHERE n > 1 AND n <= 1";
    for call in ["count(DISTINCT c)", "count(c)", "count(*)", "count(1)"] {
        for from in ["t WHERE k > 1", ranked] {
            let sql = format!("SELECT {call} FROM (SELECT 7 AS c FROM {from})");
            let tables = BTreeMap::from([("t".to_owned(), vec![t.clone()])]);
            let (_, batches) = session().run_batch(&sql, &sources, tables).unwrap();
            assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().values(), &[0], "{sql}");
        }
    }
}

#[test]
fn ties_of_a_window_are_broken_by_the_rest_of_the_row() {
    let sources = sources(&[("t", "k BIGINT, v BIGINT, z BIGINT")]);
    let rows = 2_000_i64;
    // A permutation of 0 to 1,999; all of one partition and equal by its order.
    let z: Vec<i64> = (0..rows).map(|i| i * 7 % rows).collect();
    let t = RecordBatch::try_from_iter([
        ("k", Arc::new(Int64Array::from(vec![1; z.len()])) as ArrayRef),
        ("v", Arc::new(Int64Array::from(vec![None; z.len()]))),
        ("z", Arc::new(Int64Array::from(z))),
    ])
    .unwrap();
    for (over, n) in [
        ("PARTITION BY k ORDER BY v", "z + 1"),
        ("ORDER BY v DESC", "z + 1"),
        ("PARTITION BY k", "z + 1"),
        ("ORDER BY k, v DESC NULLS LAST", "z + 1"),
        ("ORDER BY z DESC", "2000 - z"),
    ] {
        let ranked = format!("SELECT z, {n} AS n, row_number() OVER ({over}) AS rn FROM t");
        let twice = format!(
            "SELECT z, n, rn FROM (SELECT *, row_number() OVER ({over}) AS rn2 FROM \
             (SELECT k, v, z, {n} AS n, row_number() OVER ({over}) AS rn FROM t)) WHERE rn = rn2"
        );
        for sql in [ranked, twice] {
            let pieces = vec![t.slice(0, 700), t.slice(700, 1_300)];
            let tables = BTreeMap::from([("t".to_owned(), pieces)]);
            let (_, batches) = session().run_batch(&sql, &sources, tables).unwrap();
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2_000, "{sql}");
            for batch in batches {
                let column = |i: usize| batch.column(i).as_primitive::<Int64Type>().values();
                assert_eq!(column(1), column(2), "{sql}");
            }
        }
    }
}

#[test]
fn what_is_above_a_limit_does_not_change_which_rows_it_keeps() {
    let sources = sources(&[("u", "k BIGINT, big BIGINT"), ("t", "x BIGINT")]);
    let column = |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let u = RecordBatch::try_from_iter([("k", column(&[3, 1, 2])), ("big", column(&[30, 10, 20]))]);
    let t = RecordBatch::try_from_iter([("x", column(&[1, 2, 3]))]);
    let (u, t) = (u.unwrap(), t.unwrap());
    for (open, limit, kept) in [
        ("(SELECT", "LIMIT 1 OFFSET 2", vec![3]),
        ("(SELECT", "LIMIT 2", vec![1, 2]),
        ("(SELECT", "OFFSET 1", vec![2, 3]),
        ("(SELECT", "LIMIT 2 OFFSET 1", vec![2, 3]),
        ("(SELECT", "LIMIT 1 OFFSET 1", vec![2]),
        ("(SELECT * FROM (SELECT", "LIMIT 2 OFFSET 1) AS v LIMIT 1", vec![2]),
    ] {
        for sql in [
            format!("SELECT l.k FROM {open} * FROM u ORDER BY big {limit}) l JOIN t ON l.k = t.x"),
            format!("SELECT k FROM {open} k FROM u ORDER BY big {limit}) GROUP BY k"),
            format!("SELECT l.k FROM {open} k, big + 1 AS b FROM u ORDER BY big {limit}) l"),
            format!("SELECT k FROM {open} k, big FROM u ORDER BY big {limit}) ORDER BY 0 - k"),
            format!(
                "SELECT k FROM (SELECT k, row_number() OVER (ORDER BY 0 - k) AS n FROM \
                 {open} k FROM u ORDER BY big {limit}))"
            ),
            format!(
                "SELECT k FROM {open} k, big FROM u ORDER BY big {limit}) UNION \
                 SELECT k FROM {open} k, big FROM u ORDER BY big {limit})"
            ),
        ] {
            let tables = BTreeMap::from([
                ("u".to_owned(), vec![u.clone()]),
                ("t".to_owned(), vec![t.clone()]),
            ]);
            let (_, batches) = session().run_batch(&sql, &sources, tables).unwrap();
            let mut rows: Vec<i64> = (batches.iter())
                .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
                .collect();
            rows.sort_unstable();
            assert_eq!(rows, kept, "{sql}");
        }
    }
}

#[test]
fn statistics_beside_a_count_of_the_same_column() {
    let row = single(
        "SELECT count(x) AS n, stddev_samp(x) AS s, avg(x) AS a, var_pop(x) FILTER (WHERE x > 1) AS v,
                corr(x, 2 * x) AS c
         FROM (VALUES (1), (2), (3), (4), (NULL)) t(x)",
    )
    .unwrap();
    assert_eq!(row.column(0).as_primitive::<Int64Type>().value(0), 4);
    let float = |at: usize| row.column(at).as_primitive::<Float64Type>().value(0);
    assert_eq!((float(1), float(2)), ((5.0_f64 / 3.0).sqrt(), 2.5));
    assert_eq!((float(3), float(4)), (2.0 / 3.0, 1.0));
}

#[test]
fn intervals_compare_by_their_length() {
    let session = session();
    let run = |sql: &str| {
        let (_, batches) = session.run_batch(sql, &Sources::new(), Default::default()).unwrap();
        let pieces: Vec<ZBatch> = batches.into_iter().map(ZBatch::inserts).collect();
        pieces.iter().map(ToString::to_string).collect::<String>()
    };
    let of = "FROM (VALUES (1, INTERVAL 36 HOURS), (2, INTERVAL 1 DAY), (3, INTERVAL 24 HOURS),
              (4, NULL)) AS v(id, x)";
    assert_eq!(run(&format!("SELECT max_by(id, x), min_by(id, x) {of}")), "+ 1 | 2\n");
    assert_eq!(
        run(&format!("SELECT array_agg(id ORDER BY x DESC NULLS LAST)[1] AS a {of}")),
        "+ 1\n"
    );
    assert_eq!(run("SELECT INTERVAL 36 HOURS < INTERVAL 1 DAY"), "+ false\n");
    assert_eq!(run("SELECT INTERVAL 24 HOURS = INTERVAL 1 DAY"), "+ true\n");
    let longer =
        "SELECT TIMESTAMP '2024-05-03 01:00:00' - TIMESTAMP '2024-05-01' > INTERVAL 2 DAYS";
    assert_eq!(run(longer), "+ true\n");
    assert_eq!(
        run(&format!(
            "SELECT id {of} WHERE x BETWEEN INTERVAL 20 HOURS AND INTERVAL 1 DAY ORDER BY id"
        )),
        "+ 2\n+ 3\n"
    );
    assert_eq!(
        run(&format!("SELECT id {of} WHERE x IN (INTERVAL 1 DAY) ORDER BY id")),
        "+ 2\n+ 3\n"
    );
    assert_eq!(
        run(&format!("SELECT id {of} WHERE x IS DISTINCT FROM INTERVAL 1 DAY ORDER BY id")),
        "+ 1\n+ 4\n"
    );
    assert_eq!(
        run(&format!("SELECT id {of} ORDER BY x DESC NULLS LAST, id LIMIT 2")),
        "+ 1\n+ 2\n"
    );
    assert_eq!(
        run(&format!("SELECT max(x) = INTERVAL 36 HOURS, min(x) = INTERVAL 1 DAY {of}")),
        "+ true | true\n"
    );
    assert_eq!(
        run(&format!(
            "SELECT id, row_number() OVER (ORDER BY x, id ROWS UNBOUNDED PRECEDING) AS r {of} ORDER BY id"
        )),
        "+ 1 | 3\n+ 2 | 1\n+ 3 | 2\n+ 4 | 4\n"
    );
}
