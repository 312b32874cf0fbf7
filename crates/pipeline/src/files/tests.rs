//! Files of all shapes, read with declared schemas.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::util::display::array_value_to_string;
use deltaic_batch::Result;

use super::options::{FileOptions, Format, Mode};
use super::{FileSchema, list, read_file};

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|(n, t)| Field::new(*n, t.clone(), true)).collect();
    Arc::new(Schema::new(fields))
}

fn extras(data: &SchemaRef, options: &FileOptions) -> FileSchema {
    let mut fields = data.fields().to_vec();
    for name in [&options.rescued_column, &options.corrupt_column].into_iter().flatten() {
        fields.push(Arc::new(Field::new(name, DataType::Utf8, true)));
    }
    FileSchema { data: data.clone(), rows: Arc::new(Schema::new(fields)), stored: None }
}

fn read(name: &str, bytes: &[u8], options: &FileOptions, data: &SchemaRef) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), bytes).unwrap();
    let options = FileOptions { path: name.to_string(), ..options.clone() };
    let files = list(folder.path(), &options)?;
    let batches = read_file(folder.path(), &files[0], &options, &extras(data, &options), false)?;
    Ok(batches.iter().flat_map(rows).collect())
}

fn rows(batch: &RecordBatch) -> Vec<String> {
    (0..batch.num_rows())
        .map(|row| {
            let cells = batch.columns().iter().map(|c| {
                if c.is_null(row) { "∅".into() } else { array_value_to_string(c, row).unwrap() }
            });
            cells.collect::<Vec<String>>().join("|")
        })
        .collect()
}

fn csv() -> FileOptions {
    FileOptions { header: true, ..FileOptions::plain("x", Format::Csv) }
}

fn json() -> FileOptions {
    FileOptions::plain("x", Format::Json)
}

fn id_v_n() -> SchemaRef {
    schema(&[("id", DataType::Int32), ("v", DataType::Int32), ("n", DataType::Utf8)])
}

#[test]
fn csv_quotes_breaks_and_nulls() {
    let data = schema(&[("id", DataType::Int32), ("s", DataType::Utf8)]);
    let text = "id,s\r\n1,\"a,b\"\r\n2,\"say \"\"hi\"\"\"\r\n3,\"\"\r\n4,\r\n\r\n5,\" x\ny \"";
    let got = read("a.csv", text.as_bytes(), &csv(), &data).unwrap();
    assert_eq!(got, ["1|a,b", "2|say \"hi\"", "3|", "4|∅", "5| x\ny "]);
}

#[test]
fn csv_columns_go_by_header_and_missing_ones_are_null() {
    let got = read("a.csv", b"\xef\xbb\xbfN,ID\na,1\n", &csv(), &id_v_n()).unwrap();
    assert_eq!(got, ["1|∅|a"]);
    let declared = FileOptions { schema: Some(id_v_n()), ..csv() };
    let wrong = read("a.csv", b"x,y\n1,2\n", &declared, &id_v_n()).unwrap_err();
    assert!(wrong.to_string().contains("a.csv:1"), "{wrong}");
}

#[test]
fn empty_and_header_only_files_have_no_rows() {
    assert!(read("a.csv", b"", &csv(), &id_v_n()).unwrap().is_empty());
    assert!(read("a.csv", b"id,v,n\n", &csv(), &id_v_n()).unwrap().is_empty());
    assert!(read("a.json", b"\n", &json(), &id_v_n()).unwrap().is_empty());
}

const UNEVEN: &str = "id,v,n\n1,10,a\n2,20\n3,x3,c\n4,40,d,extra\n\n5,,e\n";

#[test]
fn malformed_rows_by_mode() {
    let permissive = FileOptions { mode: Some(Mode::Permissive), ..csv() };
    let got = read("a.csv", UNEVEN.as_bytes(), &permissive, &id_v_n()).unwrap();
    assert_eq!(got, ["1|10|a", "2|20|∅", "3|∅|c", "4|40|d", "5|∅|e"]);

    let corrupt = FileOptions { corrupt_column: Some("_corrupt".into()), ..csv() };
    let got = read("a.csv", UNEVEN.as_bytes(), &corrupt, &id_v_n()).unwrap();
    assert_eq!(got[1..4], ["2|20|∅|2,20", "3|∅|c|3,x3,c", "4|40|d|4,40,d,extra"]);

    let dropping = FileOptions { mode: Some(Mode::DropMalformed), ..csv() };
    let got = read("a.csv", UNEVEN.as_bytes(), &dropping, &id_v_n()).unwrap();
    assert_eq!(got, ["1|10|a", "5|∅|e"]);

    let error = read("a.csv", UNEVEN.as_bytes(), &csv(), &id_v_n()).unwrap_err();
    assert_eq!(error.code(), "MALFORMED_ROW");
    assert_eq!(error.get_object(), Some("a.csv:3"));
}

#[test]
fn an_open_quote_is_named_with_its_line() {
    let error = read("a.csv", b"id,v,n\n1,2,\"x\n", &csv(), &id_v_n()).unwrap_err();
    assert_eq!(error.get_object(), Some("a.csv:2"));
}

#[test]
fn values_that_do_not_fit_are_rescued() {
    let rescue = FileOptions { rescued_column: Some("_rescued".into()), ..json() };
    let data = schema(&[("id", DataType::Int64), ("v", DataType::Int64)]);
    let text = "{\"id\":2,\"v\":\"n/a\"}\n{\"id\":3,\"v\":7,\"more\":[1, 2]}\n";
    let got = read("a.json", text.as_bytes(), &rescue, &data).unwrap();
    assert_eq!(got, ["2|∅|{\"v\":\"n/a\"}", "3|7|{\"more\":[1, 2]}"]);
}

#[test]
fn json_numbers_keep_their_digits() {
    let data = schema(&[
        ("b", DataType::Int64),
        ("d", DataType::Decimal128(38, 18)),
        ("f", DataType::Float64),
        ("t", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ]);
    let text = "{\"b\":9007199254740993,\"d\":12345678901234567890.123456789012345678,\"f\":\"NaN\",\
                \"t\":\"2024-01-31T10:00:00.123456\"}\n{\"b\":1.2e6,\"d\":\"1.10\",\"f\":\"-Infinity\"}\n";
    let got = read("a.json", text.as_bytes(), &json(), &data).unwrap();
    assert_eq!(
        got,
        [
            "9007199254740993|12345678901234567890.123456789012345678|NaN|2024-01-31T10:00:00.123456",
            "1200000|1.100000000000000000|-inf|∅"
        ]
    );
}

#[test]
fn json_names_match_without_case_and_nested_values_are_read() {
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let inner = DataType::Struct(vec![Field::new("x", DataType::Int64, true)].into());
    let data = schema(&[("userId", DataType::Utf8), ("l", DataType::List(item)), ("s", inner)]);
    let text = "{\"userID\":\"y\",\"l\":[1,null,3],\"s\":{\"X\":4}}\n{\"l\":null}\n";
    let got = read("a.json", text.as_bytes(), &json(), &data).unwrap();
    assert_eq!(got, ["y|[1, , 3]|{x: 4}", "∅|∅|∅"]);
    let twice = read("a.json", b"{\"userId\":1,\"userID\":2}", &json(), &data).unwrap_err();
    assert!(twice.message().contains("twice"), "{twice}");
}

#[test]
fn broken_json_is_named_with_its_line_and_multi_line_files_are_read_whole() {
    let data = schema(&[("a", DataType::Int64)]);
    let error = read("a.json", b"{\"a\":1}\n{\"a\":\n", &json(), &data).unwrap_err();
    assert_eq!(error.get_object(), Some("a.json:2"));
    let whole = FileOptions { multi_line: true, ..json() };
    let got = read("a.json", b"[{\"a\":\n1},\n{\"a\":2}]", &whole, &data).unwrap();
    assert_eq!(got, ["1", "2"]);
}

#[test]
fn compressed_files_are_known_by_suffix() {
    use std::io::Write;
    let data = schema(&[("a", DataType::Int64)]);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(b"{\"a\":1}").unwrap();
    assert_eq!(read("a.json.gz", &gz.finish().unwrap(), &json(), &data).unwrap(), ["1"]);
    let zst = zstd::stream::encode_all(&b"{\"a\":2}"[..], 1).unwrap();
    assert_eq!(read("a.json.zst", &zst, &json(), &data).unwrap(), ["2"]);
    let error = read("a.json.gz", b"no gzip", &json(), &data).unwrap_err();
    assert_eq!(error.code(), "FILE_UNREADABLE");
}

fn names(root: &Path, path: &str) -> Vec<String> {
    let options = FileOptions { path: path.to_string(), ..json() };
    list(root, &options).unwrap().into_iter().map(|f| f.path).collect()
}

#[test]
fn folders_globs_and_hidden_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["in/b.json", "in/a.json", "in/_tmp.json", "in/.x", "in/sub/c.json"] {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::write(root.join(name), "{}").unwrap();
    }
    assert_eq!(names(root, "in"), ["in/a.json", "in/b.json", "in/sub/c.json"]);
    assert_eq!(names(root, "in/a*.json"), ["in/a.json"]);
    assert_eq!(names(root, "in/b.json"), ["in/b.json"]);
    let missing = FileOptions { path: "inn".into(), ..json() };
    let error = list(root, &missing).unwrap_err();
    assert!(error.to_string().contains("beside it there is in"), "{error}");
}
