//! Graphs of valid projects.

use arrow::datatypes::DataType;
use deltaic_plan::RefreshPolicy;
use deltaic_sql::{DatasetKind, OnViolation, ScdType};

use super::super::{FlowKind, Graph, InputSource};
use super::{BRONZE, graph, resolve_files};

fn columns(graph: &Graph, key: &str) -> Vec<String> {
    let dataset = graph.datasets.iter().find(|d| d.key == key).unwrap();
    dataset.schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect()
}

fn keys(graph: &Graph) -> Vec<&str> {
    graph.datasets.iter().map(|d| d.key.as_str()).collect()
}

#[test]
fn datasets_come_after_what_they_read() {
    let g = graph(&format!(
        "CREATE MATERIALIZED VIEW Gold AS SELECT v, count(*) AS n FROM silver GROUP BY v;
         CREATE MATERIALIZED VIEW silver REFRESH POLICY FULL AS SELECT Id, V FROM B;
         {BRONZE}"
    ));
    assert_eq!(keys(&g), ["b", "silver", "gold"]);
    assert_eq!(g.datasets[2].name, "Gold");
    assert_eq!(columns(&g, "gold"), ["v Utf8", "n Int64"]);
    assert_eq!(g.datasets[1].refresh_policy, RefreshPolicy::Full);
    assert_eq!(g.flows.iter().map(|f| f.target).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(matches!(g.flows[0].kind, FlowKind::Append));
    assert!(matches!(g.flows[1].kind, FlowKind::View));
    assert!(matches!(&g.flows[0].inputs[0].source, InputSource::Files(f) if f.path == "in"));
    assert!(matches!(g.flows[2].inputs[0].source, InputSource::Dataset(1)));
    assert!(g.datasets[0].append_only && !g.datasets[1].append_only);
    assert_eq!(g.flows[0].location.to_string(), "a.sql:3:33");
}

#[test]
fn names_of_all_spellings_are_one_dataset() {
    let g = graph(&format!(
        "{BRONZE}CREATE MATERIALIZED VIEW m AS SELECT x.id FROM LIVE.b x JOIN default.B y ON x.id = y.id
         JOIN main.default.b z ON z.id = y.id;"
    ));
    let inputs: Vec<_> = g.flows[1].inputs.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(inputs, ["b", "default.b", "main.default.b"]);
    assert!(g.flows[1].inputs.iter().all(|i| matches!(i.source, InputSource::Dataset(0))));
}

#[test]
fn use_and_set_hold_for_the_rest_of_their_file() {
    let g = resolve_files(&[
        ("a.sql", "SET a = 'file'; USE SCHEMA other; CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('x');"),
        ("b.sql", "CREATE MATERIALIZED VIEW m AS SELECT id FROM other.t; CREATE MATERIALIZED VIEW t AS SELECT id FROM m;"),
    ])
    .unwrap();
    assert_eq!(keys(&g), ["other.t", "m", "t"]);
    assert_eq!(g.flows[0].configuration["a"], "file");
    assert_eq!(g.flows[1].configuration["a"], "project");
}

#[test]
fn temporary_views_are_followed_to_their_leaves() {
    let g = graph(&format!(
        "{BRONZE}
         CREATE TEMPORARY VIEW one AS SELECT id, v FROM STREAM(b) WHERE id > 0;
         CREATE TEMPORARY VIEW two AS SELECT id, upper(v) AS v FROM STREAM(one);
         CREATE STREAMING TABLE t AS SELECT two.v, id FROM STREAM(two);
         CREATE VIEW named AS SELECT v FROM t;
         CREATE MATERIALIZED VIEW m AS SELECT * FROM named;"
    ));
    assert_eq!(columns(&g, "t"), ["v Utf8", "id Int64"]);
    let flow = g.flows.iter().find(|f| f.name == "t").unwrap();
    assert_eq!(flow.views.len(), 2);
    assert_eq!(flow.inputs.len(), 1);
    assert!(flow.inputs[0].streaming);
    let two = g.datasets.iter().find(|d| d.key == "two").unwrap();
    assert_eq!(two.kind, DatasetKind::TemporaryView);
    assert_eq!((two.view_inputs.len(), two.view_views.len()), (1, 1));
    assert!(two.view_query.is_some() && two.flows.is_empty());
    let m = g.flows.iter().find(|f| f.name == "m").unwrap();
    let t = g.datasets.iter().position(|d| d.key == "t").unwrap();
    assert!(matches!(m.inputs[0].source, InputSource::Dataset(d) if d == t));
}

#[test]
fn several_flows_into_one_table() {
    let g = graph(
        "CREATE STREAMING TABLE t;
         CREATE FLOW f AS INSERT INTO t BY NAME SELECT id, v FROM STREAM read_files('a');
         CREATE FLOW g AS INSERT INTO t BY NAME SELECT v, CAST(id AS INT) AS id, ts FROM STREAM read_files('b');
         CREATE FLOW h AS INSERT INTO ONCE t BY NAME SELECT id FROM read_files('c');",
    );
    assert_eq!(columns(&g, "t"), ["id Int64", "v Utf8", "ts Timestamp(µs, \"UTC\")"]);
    assert_eq!(g.datasets[0].flows, [0, 1, 2]);
    assert!(g.flows[2].once && !g.flows[2].inputs[0].streaming);
}

#[test]
fn declared_columns_and_expectations() {
    let g = graph(
        "CREATE STREAMING TABLE t (id DECIMAL(30, 2), v STRING NOT NULL, extra INT,
           CONSTRAINT c EXPECT (id > 0 AND v <> '') ON VIOLATION DROP ROW)
         AS SELECT v, id FROM STREAM read_files('a');",
    );
    assert_eq!(columns(&g, "t"), ["id Decimal128(30, 2)", "v Utf8", "extra Int32"]);
    let t = &g.datasets[0];
    assert_eq!((t.schema.field(0).is_nullable(), t.schema.field(1).is_nullable()), (true, false));
    let expectations: Vec<_> =
        t.expectations.iter().map(|(e, _)| (e.name.value.as_str(), e.action)).collect();
    assert_eq!(expectations, [("c", OnViolation::DropRow)]);
}

#[test]
fn auto_cdc_targets() {
    let g = graph(&format!(
        "{BRONZE}
         CREATE STREAMING TABLE t (CONSTRAINT ok EXPECT (ts IS NOT NULL));
         CREATE FLOW f AS AUTO CDC INTO t FROM (SELECT id, v, upper(v) AS w, ts FROM STREAM(b)) KEYS (ID)
           APPLY AS DELETE WHEN v = 'd' SEQUENCE BY ts COLUMNS * EXCEPT (ts)
           STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (w) IGNORE NULL UPDATES;
         CREATE STREAMING TABLE u FLOW AUTO CDC FROM STREAM b KEYS (id) SEQUENCE BY struct(ts, id);"
    ));
    let at = "Timestamp(µs, \"UTC\")";
    assert_eq!(
        columns(&g, "t"),
        ["id Int64", "v Utf8", "w Utf8", &format!("__START_AT {at}"), &format!("__END_AT {at}")]
    );
    let flow = g.flows.iter().find(|f| f.name == "f").unwrap();
    let FlowKind::AutoCdc(plan) = &flow.kind else { panic!() };
    assert_eq!(plan.keys, [0]);
    assert_eq!(plan.columns, [0, 1, 2]);
    assert_eq!(plan.tracked, [1]);
    assert_eq!(plan.ignore_null, [1, 2]);
    assert_eq!(plan.scd_type, ScdType::Type2);
    assert!(matches!(plan.sequence.as_ref().unwrap().field.data_type(), DataType::Timestamp(..)));
    assert!(plan.delete_when.is_some() && plan.truncate_when.is_none());
    assert!(g.datasets.iter().filter(|d| d.key != "b").all(|d| !d.append_only));
    let u = g.flows.iter().find(|f| f.name == "u").unwrap();
    let FlowKind::AutoCdc(plan) = &u.kind else { panic!() };
    assert_eq!(plan.tracked, [1, 2]);
    assert!(matches!(plan.sequence.as_ref().unwrap().field.data_type(), DataType::Struct(_)));
}

#[test]
fn two_cdc_flows_that_agree_share_a_target() {
    let flow = |name: &str| {
        format!(
            "CREATE FLOW {name} AS AUTO CDC INTO t FROM STREAM read_files('{name}') KEYS (id) SEQUENCE BY ts;"
        )
    };
    let g = graph(&format!("CREATE STREAMING TABLE t; {} {}", flow("f"), flow("g")));
    assert_eq!(g.datasets[0].flows.len(), 2);
}

#[test]
fn snapshots_changes_and_external_tables() {
    let g = graph(&format!(
        "{BRONZE}
         CREATE STREAMING TABLE s;
         CREATE FLOW f AS AUTO CDC INTO s FROM SNAPSHOT read_files('snap') KEYS (id) STORED AS SCD TYPE 2;
         CREATE MATERIALIZED VIEW c AS SELECT _change_type AS kind, count(*) AS n FROM table_changes('b', 1) GROUP BY 1;
         CREATE MATERIALIZED VIEW e AS SELECT b.id, w FROM b JOIN parquet.`/data/x` p ON p.id = b.id;"
    ));
    let f = g.flows.iter().find(|f| f.name == "f").unwrap();
    assert!(matches!(f.kind, FlowKind::AutoCdcSnapshot(_)));
    let b = g.datasets.iter().position(|d| d.key == "b").unwrap();
    let c = g.flows.iter().find(|f| f.name == "c").unwrap();
    assert!(
        matches!(c.inputs[0].source, InputSource::Changes { dataset, from: 1, to: None } if dataset == b)
    );
    let e = g.flows.iter().find(|f| f.name == "e").unwrap();
    assert!(matches!(&e.inputs[1].source, InputSource::External(path) if path == "/data/x"));
}

#[test]
fn streams_joined_with_tables() {
    let g = graph(&format!(
        "{BRONZE}
         CREATE MATERIALIZED VIEW dim AS SELECT id, max(v) AS name FROM b GROUP BY id;
         CREATE STREAMING TABLE t AS SELECT s.id, d.name FROM STREAM(b) s LEFT JOIN dim d ON s.id = d.id
           WHERE s.id > (SELECT min(id) FROM dim);"
    ));
    let t = g.flows.iter().find(|f| f.name == "t").unwrap();
    assert_eq!(t.inputs.iter().map(|i| i.streaming).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_view_that_only_grows_is_a_stream() {
    let g = graph(&format!(
        "{BRONZE}CREATE MATERIALIZED VIEW m AS SELECT id, v FROM b WHERE id > 1;
         CREATE STREAMING TABLE t AS SELECT * FROM STREAM m;"
    ));
    assert_eq!(keys(&g), ["b", "m", "t"]);
}

#[test]
fn columns_of_an_envelope_are_told() {
    let warnings = |clauses: &str| {
        let text = format!(
            "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM read_files('in',
               schema => 'id INT, v STRING, op STRING, ts TIMESTAMP') KEYS (id) SEQUENCE BY ts {clauses};"
        );
        graph(&text).warnings
    };
    let told = warnings("STORED AS SCD TYPE 2");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("op, ts of the change events") && told[0].contains("open versions"));
    assert!(told[0].contains("COLUMNS * EXCEPT (op, ts)"), "{told:?}");
    assert!(
        warnings("APPLY AS DELETE WHEN v = 'x' COLUMNS * EXCEPT (op)")[0].contains(": v, ts of")
    );
    assert!(warnings("COLUMNS * EXCEPT (op, ts)").is_empty());
    assert!(warnings("COLUMNS (id, ts)").is_empty());
}

#[test]
fn a_change_feed_needs_no_clauses() {
    let text = format!(
        "{BRONZE}CREATE STREAMING TABLE t;
         CREATE FLOW f AS AUTO CDC INTO t FROM STREAM table_changes('b', 0) KEYS (id) STORED AS SCD TYPE 2;"
    );
    let graph = graph(&text);
    assert!(graph.warnings.is_empty(), "{:?}", graph.warnings);
    let flow = graph.flows.iter().find(|flow| flow.name == "f").unwrap();
    let FlowKind::AutoCdc(plan) = &flow.kind else { panic!("{:?}", flow.kind) };
    assert!(plan.change_feed && plan.delete_when.is_some());
    let names: Vec<&str> =
        plan.columns.iter().map(|c| flow.schema.field(*c).name().as_str()).collect();
    assert_eq!(names, ["id", "v", "ts"]);
    let plain = "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM read_files('in') KEYS (id);";
    assert_eq!(super::error(plain).code(), "AUTOCDC_MISSING_SEQUENCE_BY");
}
