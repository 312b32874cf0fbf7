//! Worked views, each step checked against a batch run.

use super::Checked;

const ORDERS: (&str, &str) = ("orders", "id INT, region STRING, amount INT, price DOUBLE");
const REGIONS: (&str, &str) = ("regions", "name STRING, country STRING");

/// Two steps of changes to both tables.
const STEPS: [&[(&str, &str)]; 3] = [
    &[
        (
            "orders",
            "+ 1 | n | 10 | 1.5\n+ 2 | n | 20 | 0.25\n+ 3 | s | 30 | NULL\n+ 4 | NULL | NULL | 2.5",
        ),
        ("regions", "+ n | A\n+ s | B\n+ s | C"),
    ],
    &[
        (
            "orders",
            "- 2 | n | 20 | 0.25\n+ 5 | s | 5 | 7.0\n+ 6 | w | 60 | 1.0\n+ 1 | n | 10 | 1.5",
        ),
        ("regions", "- s | C\n+ NULL | Z"),
    ],
    &[
        (
            "orders",
            "- 1 | n | 10 | 1.5\n- 1 | n | 10 | 1.5\n- 3 | s | 30 | NULL\n- 4 | NULL | NULL | 2.5",
        ),
        ("regions", "- n | A\n+ w | D"),
    ],
];

fn check(sql: &str) -> Checked {
    let mut view = Checked::new(&[ORDERS, REGIONS], sql);
    for step in STEPS {
        view.step(step).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    view
}

macro_rules! views {
    ($($name:ident: $sql:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check($sql);
            }
        )*
    };
}

views! {
    projection: "SELECT id + 1 AS next, upper(region) AS r FROM orders";
    filter: "SELECT id FROM orders WHERE amount > 9 AND region IS NOT NULL";
    star: "SELECT * FROM orders";
    union_all: "SELECT region FROM orders UNION ALL SELECT name FROM regions";
    union: "SELECT region FROM orders UNION SELECT name FROM regions";
    distinct: "SELECT DISTINCT region FROM orders";
    inner_join: "SELECT o.id, r.country FROM orders o JOIN regions r ON o.region = r.name";
    join_with_residual:
        "SELECT o.id, r.country FROM orders o JOIN regions r ON upper(o.region) = upper(r.name) AND o.amount > length(r.country) * 10";
    left_join: "SELECT o.id, r.country FROM orders o LEFT JOIN regions r ON o.region = r.name";
    left_join_computed_key:
        "SELECT o.id, r.country FROM orders o LEFT JOIN regions r ON concat(o.region, '!') = concat(r.name, '!') AND r.country <> 'A'";
    right_join: "SELECT o.id, r.country FROM orders o RIGHT JOIN regions r ON o.region = r.name";
    full_join: "SELECT o.id, r.country FROM orders o FULL JOIN regions r ON o.region = r.name";
    join_using_and_filter: "SELECT region, o.id, r.n FROM orders o JOIN (SELECT name AS region, count(*) AS n FROM regions GROUP BY name) r USING (region) WHERE region > 'a'";
    is_distinct_from_and: "SELECT id FROM orders WHERE id IS DISTINCT FROM amount AND region = 'n'";
    grouping_sets_of_nothing: "SELECT region, count(*) AS n FROM orders WHERE 1 = 2 GROUP BY GROUPING SETS ((region), ())";
    cross_join: "SELECT o.id, r.country FROM orders o CROSS JOIN regions r";
    non_equi_join: "SELECT o.id, p.id AS other FROM orders o JOIN orders p ON o.amount < p.amount";
    semi_join: "SELECT id FROM orders WHERE region IN (SELECT name FROM regions)";
    exists: "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM regions r WHERE r.name = o.region AND r.country > 'A')";
    not_exists: "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM regions r WHERE r.name = o.region)";
    not_in: "SELECT id FROM orders WHERE region NOT IN (SELECT name FROM regions WHERE country <> 'Z')";
    not_in_with_null: "SELECT id FROM orders WHERE region NOT IN (SELECT name FROM regions)";
    exists_or: "SELECT id FROM orders o WHERE amount > 25 OR EXISTS (SELECT 1 FROM regions r WHERE r.name = o.region)";
    group: "SELECT region, count(*) AS n, sum(amount) AS s, avg(amount) AS a, min(id) AS lo, max(id) AS hi FROM orders GROUP BY region";
    group_by_expression: "SELECT amount % 20 AS k, count(*) AS n FROM orders GROUP BY amount % 20 HAVING count(*) > 1";
    global: "SELECT count(*) AS n, count(amount) AS m, sum(amount) AS s, max(price) AS p FROM orders";
    aggregate_filter: "SELECT region, count(*) FILTER (WHERE amount > 15) AS n, sum(amount) FILTER (WHERE id < 3) AS s FROM orders GROUP BY region";
    count_distinct: "SELECT count(DISTINCT region) AS n, sum(amount) AS s FROM orders";
    bool_aggregates: "SELECT region, bool_or(amount > 15) AS any, bool_and(amount > 15) AS every FROM orders GROUP BY region";
    mixed_aggregates: "SELECT region, median(amount) AS m, count(*) AS n, bit_xor(id) AS x, sum(amount) AS s FROM orders GROUP BY region";
    only_recomputed_aggregates: "SELECT median(amount) AS m FROM orders";
    array_agg: "SELECT region, array_agg(id ORDER BY amount DESC) AS ids FROM orders GROUP BY region";
    scalar_subquery: "SELECT id FROM orders WHERE amount = (SELECT max(amount) FROM orders)";
    correlated_scalar: "SELECT r.name, (SELECT sum(amount) FROM orders o WHERE o.region = r.name) AS s FROM regions r";
    correlated_by_inequality: "SELECT id, (SELECT count(*) FROM orders x WHERE x.amount < o.amount) AS below FROM orders o";
    correlated_by_several: "SELECT name, (SELECT sum(amount) + 1 FROM orders o WHERE o.region = r.name AND o.id > length(r.country)) AS s FROM regions r";
    correlated_in_a_condition: "SELECT id FROM orders o WHERE amount > (SELECT avg(x.amount) FROM orders x WHERE x.id <> o.id)";
    correlated_with_filter_and_distinct: "SELECT id, (SELECT count(DISTINCT x.region) FILTER (WHERE x.id > 1) FROM orders x WHERE x.amount >= o.amount OR o.region IS NULL) AS n FROM orders o";
    except: "SELECT region FROM orders EXCEPT SELECT name FROM regions";
    except_all: "SELECT region FROM orders EXCEPT ALL SELECT name FROM regions";
    intersect: "SELECT region FROM orders INTERSECT SELECT name FROM regions";
    intersect_all: "SELECT region AS a FROM orders INTERSECT ALL SELECT name AS b FROM regions";
    nested_set_operations: "SELECT region FROM orders EXCEPT ALL (SELECT name FROM regions INTERSECT ALL SELECT region FROM orders)";
    limit: "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2";
    limit_offset: "SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 1";
    order_without_limit: "SELECT id FROM orders ORDER BY id";
    row_number: "SELECT id, row_number() OVER (PARTITION BY region ORDER BY amount, id) AS rn FROM orders";
    windows: "SELECT id, rank() OVER (ORDER BY region) AS rk, sum(amount) OVER (PARTITION BY region) AS s, lag(id) OVER (ORDER BY id) AS p FROM orders";
    arithmetic_on_ranks: "SELECT rn + 3 AS a, sum(rn) AS b FROM (SELECT row_number() OVER (PARTITION BY region ORDER BY id) AS rn FROM orders) t GROUP BY rn";
    top_per_group: "SELECT region, id FROM (SELECT region, id, row_number() OVER (PARTITION BY region ORDER BY amount DESC, id) AS rn FROM orders) t WHERE rn = 1";
    aggregate_above_window: "SELECT rn, count(*) AS n FROM (SELECT row_number() OVER (PARTITION BY region ORDER BY id) AS rn FROM orders) t GROUP BY rn";
    values_only: "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (2, 'b')) AS t(x, y)";
    constant: "SELECT 1 AS one, 'x' AS x";
    join_with_values: "SELECT o.id, v.label FROM orders o JOIN (VALUES ('n', 'north'), ('s', 'south')) AS v(code, label) ON v.code = o.region";
    cte_used_twice: "WITH t AS (SELECT region, sum(amount) AS s FROM orders GROUP BY region) SELECT a.region, a.s, b.s AS t FROM t a JOIN t b ON a.s < b.s";
    grouping_sets: "SELECT region, amount % 2 AS odd, count(*) AS n FROM orders GROUP BY ROLLUP (region, amount % 2)";
    grouping_sets_without_keys: "SELECT count(*) AS n FROM (SELECT region, count(*) AS c FROM orders GROUP BY GROUPING SETS ((region), (), ())) t";
    copies_without_columns: "SELECT count(*) AS n FROM (SELECT rank() OVER () AS r FROM orders) t";
    case_and_coalesce: "SELECT CASE WHEN amount > 15 THEN 'big' WHEN amount IS NULL THEN NULL ELSE 'small' END AS size, coalesce(price, 0.0) AS p FROM orders";
    between_and_like: "SELECT id FROM orders WHERE amount BETWEEN 5 AND 20 OR region LIKE 'w%'";
    recursion: "WITH RECURSIVE t(n) AS (SELECT min(id) FROM orders UNION ALL SELECT n + 1 FROM t WHERE n < 6) SELECT n FROM t";
    series: "SELECT value FROM generate_series(1, 3) WHERE value IN (SELECT id FROM orders)";
    unnest: "SELECT id, unnest(make_array(amount, id)) AS x FROM orders";
    impossible: "SELECT id FROM orders WHERE 1 = 2";
    qualify: "SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY region ORDER BY id) = 1";
    any_value_by_row: "SELECT DISTINCT ON (region) region, id FROM orders ORDER BY region, id";
}

#[test]
fn a_global_aggregate_has_its_row_before_any_data() {
    let mut view = Checked::new(&[ORDERS], "SELECT count(*) AS n, sum(amount) AS s FROM orders");
    view.step(&[]).unwrap();
    assert_eq!(view.rows(), ["+ 0 | NULL"]);
}

#[test]
fn ties_of_a_limit_do_not_depend_on_the_way() {
    let sql = "SELECT id, region FROM orders ORDER BY region LIMIT 2";
    let mut one = Checked::new(&[ORDERS], sql);
    one.step(&[("orders", "+ 3 | n | 1 | 1.0\n+ 1 | n | 1 | 1.0\n+ 2 | n | 1 | 1.0")]).unwrap();
    let mut two = Checked::new(&[ORDERS], sql);
    for row in ["+ 2 | n | 1 | 1.0", "+ 3 | n | 1 | 1.0", "+ 1 | n | 1 | 1.0"] {
        two.step(&[("orders", row)]).ok();
    }
    assert_eq!(one.rows(), two.rows());
}

#[test]
fn float_sums_come_back_exactly() {
    let mut view =
        Checked::new(&[("t", "k INT, x DOUBLE")], "SELECT k, sum(x) AS s FROM t GROUP BY k");
    view.step(&[("t", "+ 1 | 1.0")]).unwrap();
    view.step(&[("t", "+ 1 | 1e16\n- 1 | 1.0")]).unwrap();
    view.step(&[("t", "+ 1 | 1.0\n- 1 | 1e16")]).unwrap();
    assert_eq!(view.rows(), ["+ 1 | 1.0"]);
}

/// Rows of a view after the first step, which has regions without orders and the other way round.
fn first_rows(sql: &str) -> Vec<String> {
    let mut view = Checked::new(&[ORDERS, REGIONS], sql);
    let orders = "+ 1 | n | 10 | 1.5\n+ 2 | x | 20 | 0.5";
    view.step(&[("orders", orders), ("regions", "+ n | A\n+ s | B")]).unwrap();
    view.rows()
}

#[test]
fn the_column_of_using_is_the_one_that_is_there() {
    let named = "(SELECT name AS region, country FROM regions) r USING (region)";
    let full = format!("SELECT region, id FROM orders FULL JOIN {named}");
    assert_eq!(first_rows(&full), ["+ n | 1", "+ s | NULL", "+ x | 2"]);
    let right = format!("SELECT region, id FROM orders RIGHT JOIN {named}");
    assert_eq!(first_rows(&right), ["+ n | 1", "+ s | NULL"]);
    let star = format!("SELECT * FROM orders FULL JOIN {named}");
    let rows =
        ["+ 1 | n | 10 | 1.5 | A", "+ 2 | x | 20 | 0.5 | NULL", "+ NULL | s | NULL | NULL | B"];
    assert_eq!(first_rows(&star), rows);
    let grouped = format!(
        "SELECT region, count(*) AS n FROM orders FULL JOIN {named} WHERE region < 't' GROUP BY region"
    );
    assert_eq!(first_rows(&grouped), ["+ n | 1", "+ s | 1"]);
}

#[test]
fn set_operations_on_multisets_name_their_columns() {
    for operator in ["EXCEPT ALL", "INTERSECT ALL", "EXCEPT", "UNION ALL"] {
        let sql = format!("SELECT region FROM orders {operator} SELECT name FROM regions");
        let plan = Checked::new(&[ORDERS, REGIONS], &sql).plan;
        assert_eq!(plan.schema().field(0).name(), "region", "{operator}");
    }
}

#[test]
fn a_condition_without_columns_stays_above_an_aggregate_that_has_a_row_for_nothing() {
    for sql in [
        "SELECT count(*) AS n FROM orders HAVING count(*) NOT IN (7, NULL)",
        "SELECT n FROM (SELECT count(*) AS n, min(id) AS m FROM orders) t WHERE n <> 7 AND NULL",
        "SELECT g, n FROM (SELECT region AS g, count(*) AS n FROM orders GROUP BY CUBE (region)) t WHERE n NOT IN (-1, NULL)",
        "SELECT m FROM (SELECT m, count(*) AS n FROM (SELECT min(id) AS m FROM orders) s GROUP BY m) t WHERE n NOT IN (7, NULL)",
    ] {
        assert_eq!(first_rows(sql), Vec::<String>::new(), "{sql}");
    }
}

#[test]
fn grouping_sets_with_an_empty_one_have_a_row_for_no_input() {
    let sets = "GROUP BY GROUPING SETS ((region), ())";
    let sql = format!("SELECT region, count(*) AS n FROM orders WHERE 1 = 2 {sets}");
    assert_eq!(first_rows(&sql), ["+ NULL | 0"]);
    let sql = format!("SELECT region, count(*) AS n FROM orders WHERE id > 100 {sets}");
    assert_eq!(first_rows(&sql), ["+ NULL | 0"]);
}
