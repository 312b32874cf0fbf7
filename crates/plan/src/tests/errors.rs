//! A user's mistakes: code, place, hint.

use super::{session, sources};
use crate::Source;

fn error(sql: &str) -> deltaic_batch::Error {
    let sources = sources(&[("orders", "id INT, Region STRING, amount INT")]);
    session().plan_view(sql, &sources).map(|p| panic!("{sql}: {}", p.explain())).unwrap_err()
}

#[test]
fn codes_places_and_hints() {
    let at = |sql: &str| {
        let e = error(sql);
        let place = e.location().map(|l| (l.line, l.column));
        (e.code(), place, e.get_hint().unwrap_or("").to_owned())
    };
    let (code, place, hint) = at("SELECT id\nFROM oders");
    assert_eq!((code, place), ("TABLE_OR_VIEW_NOT_FOUND", Some((2, 6))));
    assert_eq!(hint, "did you mean 'orders'?");
    let (code, place, hint) = at("SELECT id,\n  regoin FROM orders");
    assert_eq!((code, place), ("UNRESOLVED_COLUMN", Some((2, 3))));
    assert_eq!(hint, "did you mean 'region'?");
    let (code, place, _) = at("SELECT id FROM orders WHERE");
    assert_eq!((code, place.is_some()), ("PARSE_SYNTAX_ERROR", false));
    assert_eq!(at("SELECT id, ID FROM orders").0, "COLUMN_ALREADY_EXISTS");
    assert_eq!(at("SELECT id, amount + 1 AS id FROM orders").0, "COLUMN_ALREADY_EXISTS");
    assert_eq!(at("SELECT nosuch(id) FROM orders").0, "UNRESOLVED_ROUTINE");
    assert_eq!(at("SELECT a.id FROM orders a JOIN orders b ON id = 1").0, "AMBIGUOUS_REFERENCE");
    assert_eq!(at("SELECT id, sum(amount) AS s FROM orders").0, "MISSING_AGGREGATION");
}

#[test]
fn a_view_that_reads_itself() {
    let mut sources = sources(&[]);
    sources.insert("a".into(), Source::View { sql: "SELECT * FROM b".into() });
    sources.insert("b".into(), Source::View { sql: "SELECT * FROM a".into() });
    let error = session().query_schema("SELECT * FROM a", &sources).unwrap_err();
    assert_eq!(error.code(), "CYCLIC_VIEW_REFERENCE");
}

#[test]
fn data_errors_surface_in_a_step() {
    let mut view = super::Checked::new(&[("t", "x INT")], "SELECT 10 / x AS y FROM t");
    view.step(&[("t", "+ 5")]).unwrap();
    let error = view.step(&[("t", "+ 0")]).unwrap_err();
    assert_eq!(error.code(), "DIVIDE_BY_ZERO");
}

#[test]
fn expressions_refuse_what_has_no_meaning_on_a_row() {
    let schema = session().parse_schema("a INT").unwrap();
    let code = |sql: &str| session().expression(sql, &schema).unwrap_err().code();
    assert_eq!(code("sum(a) > 1"), "INVALID_EXPRESSION");
    assert_eq!(code("b > 1"), "UNRESOLVED_COLUMN");
    assert_eq!(code("a > 1 2"), "PARSE_SYNTAX_ERROR");
}

#[test]
fn a_reference_to_one_of_two_tables_of_a_name_is_refused() {
    let sql = "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM orders JOIN
        (SELECT b.id FROM orders b WHERE b.amount = orders.amount) d ON d.id <> orders.id)";
    assert_eq!(error(sql).code(), "AMBIGUOUS_REFERENCE");
    assert!(error(sql).get_hint().is_some());
    let apart = sql.replace("FROM orders JOIN", "FROM orders c JOIN").replace("<> orders", "<> c");
    let sources = sources(&[("orders", "id INT, Region STRING, amount INT")]);
    assert!(session().plan_view(&apart, &sources).is_ok());
}

#[test]
fn a_reference_that_was_planned_with_the_type_of_another_table_is_refused() {
    let sql =
        "SELECT l.id FROM orders l JOIN (SELECT f.id FROM (SELECT id, id AS region FROM orders) l
        CROSS JOIN LATERAL (SELECT q.id FROM orders q WHERE q.id = l.region) f) r ON l.id = r.id";
    assert_eq!(error(sql).code(), "AMBIGUOUS_REFERENCE");
    let apart = sql.replace("FROM orders l", "FROM orders o").replace("ON l.id", "ON o.id");
    let apart = apart.replacen("SELECT l.id", "SELECT o.id", 1);
    let sources = sources(&[("orders", "id INT, Region STRING, amount INT")]);
    assert!(session().plan_view(&apart, &sources).is_ok());
}

#[test]
fn a_correlation_that_cannot_move_is_refused() {
    let sql = "SELECT o.id FROM orders o WHERE EXISTS (
        SELECT 1 FROM orders a FULL JOIN (SELECT * FROM orders b WHERE b.amount = o.id) bb
        ON a.id = bb.id WHERE bb.amount IS NULL)";
    assert_eq!(error(sql).code(), "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY");
}
