//! The SCD merge against recorded results: what Spark 4.3.0 did, and cases from public reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_exec::{Circuit, CircuitBuilder, CircuitOptions};
use deltaic_ops::{KIND_DELETE, KIND_TRUNCATE, KIND_UPSERT, ScdMerge, ScdSpec, ScdType};
use deltaic_testkit::{Bag, Row, Value, add_bag, add_row, to_bag, to_delta};
use serde_json::{Map, Value as Json};

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

/// A flow over a source whose columns are known by name; `op` and `seq` are among them.
struct Flow {
    source: Vec<(String, DataType)>,
    spec: ScdSpec,
    circuit: Circuit,
    target: Bag,
}

impl Flow {
    fn new(
        source: &[(&str, DataType)],
        keys: &[&str],
        columns: &[&str],
        scd_type: ScdType,
        tracked: &[&str],
        ignore_null: &[&str],
        truncates: bool,
    ) -> Self {
        let at = |name: &&str| source.iter().position(|(column, _)| column == name).unwrap();
        let mut fields: Vec<Field> =
            source.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect();
        fields.push(Field::new("__sequence", DataType::Int64, true));
        fields.push(Field::new("__kind", DataType::Int8, true));
        let spec = ScdSpec {
            input: Arc::new(Schema::new(fields)),
            keys: keys.iter().map(at).collect(),
            sequence: source.len(),
            kind: source.len() + 1,
            columns: columns.iter().map(at).collect(),
            tracked: tracked.iter().map(at).collect(),
            ignore_null: ignore_null.iter().map(at).collect(),
            scd_type,
            truncates,
            retention: None,
        };
        let mut builder = CircuitBuilder::new();
        let events = builder.source("events", spec.input.clone()).unwrap();
        let merge = Arc::new(ScdMerge::try_new(spec.clone()).unwrap());
        let target = builder.add(merge, &[events]).unwrap();
        builder.output("target", target).unwrap();
        let circuit = builder.build(CircuitOptions { shards: 3, checks: true }).unwrap();
        let source = source.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect();
        Self { source, spec, circuit, target: Bag::new() }
    }

    /// Applies one batch of events, given by their source columns.
    fn apply(&mut self, events: &[Map<String, Json>]) -> Result<(), deltaic_batch::Error> {
        let rows: Vec<(Row, i64)> = events
            .iter()
            .map(|event| {
                let mut row: Row =
                    self.source.iter().map(|(name, t)| value(&event[name], t)).collect();
                row.push(value(&event["seq"], &DataType::Int64));
                let kind = match event["op"].as_str() {
                    Some("D") => KIND_DELETE,
                    Some("T") => KIND_TRUNCATE,
                    _ => KIND_UPSERT,
                };
                row.push(Value::Int(kind.into()));
                (row, 1)
            })
            .collect();
        let delta = to_delta(&self.spec.input, &rows).unwrap();
        let outputs = self.circuit.step(vec![("events".to_owned(), delta)])?;
        add_bag(&mut self.target, &to_bag(&outputs["target"]).unwrap());
        Ok(())
    }

    fn target_schema(&self) -> SchemaRef {
        self.spec.target_schema().unwrap()
    }
}

fn value(json: &Json, data_type: &DataType) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::String(text) => Value::text(text),
        Json::Number(number) => {
            assert!(matches!(data_type, DataType::Int64 | DataType::Int32), "{data_type}");
            Value::Int(number.as_i64().unwrap().into())
        }
        other => panic!("{other}"),
    }
}

fn lines(path: &Path) -> Vec<Map<String, Json>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Rows of a target by `id`, without the ids in `left_out`.
fn by_key(bag: &Bag, left_out: &str) -> BTreeMap<Value, Bag> {
    let mut keys: BTreeMap<Value, Bag> = BTreeMap::new();
    for (row, n) in bag.iter().filter(|(row, _)| row[0] != Value::text(left_out)) {
        add_row(keys.entry(row[0].clone()).or_default(), row.clone(), *n);
    }
    keys
}

fn golden(target: &str, columns: &[&str], scd_type: ScdType, tracked: &[&str], left_out: &str) {
    let source = [
        ("id", DataType::Utf8),
        ("name", DataType::Utf8),
        ("city", DataType::Utf8),
        ("op", DataType::Utf8),
        ("seq", DataType::Int64),
    ];
    let mut flow = Flow::new(&source, &["id"], columns, scd_type, tracked, &[], false);
    let folder = tests_folder().join("golden/auto-cdc");
    for step in 0..6 {
        flow.apply(&lines(&folder.join(format!("feed/step{step}.json")))).unwrap();
        let schema = flow.target_schema();
        let mut expected = Bag::new();
        for row in lines(&folder.join(format!("expected/step{step}/{target}.jsonl"))) {
            let fields = schema.fields().iter();
            let row = fields.map(|field| value(&row[field.name()], field.data_type())).collect();
            add_row(&mut expected, row, 1);
        }
        let expected = by_key(&expected, left_out);
        assert!(expected.len() > 30, "{target}, step {step}: the expected rows are missing");
        assert_eq!(by_key(&flow.target, left_out), expected, "{target}, step {step}");
    }
}

const ORDER_DEPENDENT: &str = "k38_upsert_exactly_at_delete";
const TIE_IN_ONE_BATCH: &str = "k18_same_batch_same_seq_upsert_delete";

#[test]
fn type_1_is_as_in_spark() {
    golden("scd1", &["id", "name", "city"], ScdType::Type1, &[], TIE_IN_ONE_BATCH);
}

#[test]
fn type_2_is_as_in_spark() {
    let columns = ["id", "name", "city"];
    golden("scd2", &columns, ScdType::Type2, &["name", "city"], ORDER_DEPENDENT);
}

#[test]
fn type_2_that_tracks_one_column_is_as_in_spark() {
    let columns = ["id", "name", "city"];
    golden("scd2_track_name", &columns, ScdType::Type2, &["name"], ORDER_DEPENDENT);
}

#[test]
fn type_2_that_tracks_nothing_is_as_in_spark() {
    golden("scd2_track_none", &["id", "name", "city"], ScdType::Type2, &[], ORDER_DEPENDENT);
}

#[test]
fn type_2_of_all_columns_is_as_in_spark() {
    let columns = ["id", "name", "city", "op", "seq"];
    golden("scd2_all_columns", &columns, ScdType::Type2, &columns[1..], ORDER_DEPENDENT);
}

fn names(json: &Json) -> Vec<&str> {
    json.as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect()
}

/// Runs a case of kind `scd`; see `tests/cases/README.md` for its form.
fn run_case(case: &Json) {
    let id = case["id"].as_str().unwrap();
    let changes = &case["tables"]["changes"];
    let source: Vec<(&str, DataType)> = changes["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| {
            let data_type = match column["type"].as_str().unwrap() {
                "TEXT" => DataType::Utf8,
                "INT" => DataType::Int32,
                "BIGINT" => DataType::Int64,
                other => panic!("{id}: {other}"),
            };
            (column["name"].as_str().unwrap(), data_type)
        })
        .collect();
    let scd = &case["scd"];
    let keys = names(&scd["keys"]);
    let except = names(&scd["except_column_list"]);
    let columns: Vec<&str> =
        source.iter().map(|(name, _)| *name).filter(|name| !except.contains(name)).collect();
    let tracked: Vec<&str> = columns.iter().copied().filter(|name| !keys.contains(name)).collect();
    let type_2 = scd["stored_as_scd_type"] == 2;
    let mut flow = Flow::new(
        &source,
        &keys,
        &columns,
        if type_2 { ScdType::Type2 } else { ScdType::Type1 },
        if type_2 { &tracked } else { &[] },
        &names(&scd["ignore_null_updates"]),
        scd["apply_as_truncates"].is_string(),
    );
    for (i, batch) in changes["batches"].as_array().unwrap().iter().enumerate() {
        let events: Vec<Map<String, Json>> = batch
            .as_array()
            .unwrap()
            .iter()
            .map(|event| {
                let values = event["row"].as_array().unwrap().iter().cloned();
                source.iter().map(|(name, _)| (*name).to_owned()).zip(values).collect()
            })
            .collect();
        if case["expected_error_in_batch"][i].is_string() {
            let full = flow.circuit.write_full().unwrap();
            let error = flow.apply(&events).expect_err(id);
            assert_eq!(error.code(), "AUTOCDC_MICROBATCH_VALIDATION", "{id}, batch {i}");
            flow.circuit.restore(&full, &[]).unwrap();
        } else {
            flow.apply(&events).unwrap();
        }
        let any_of = &case["expected_any_of_after_each_batch"][i];
        let allowed: Vec<Bag> = match any_of.as_array() {
            Some(allowed) => allowed.iter().map(|rows| table(&flow, rows)).collect(),
            None => vec![table(&flow, &case["expected_after_each_batch"][i])],
        };
        assert!(allowed.contains(&flow.target), "{id}, batch {i}: {:?}", flow.target);
    }
}

fn table(flow: &Flow, rows: &Json) -> Bag {
    let schema = flow.target_schema();
    let mut bag = Bag::new();
    for row in rows.as_array().unwrap() {
        let values = row.as_array().unwrap().iter().zip(schema.fields());
        add_row(&mut bag, values.map(|(v, field)| value(v, field.data_type())).collect(), 1);
    }
    bag
}

#[test]
fn recorded_cases_hold() {
    let mut run = 0;
    for entry in std::fs::read_dir(tests_folder().join("cases")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let case: Json = serde_json::from_str(&text).unwrap();
        if case["kind"] == "scd" {
            run_case(&case);
            run += 1;
        }
    }
    assert!(run >= 15, "{run} cases found");
}
