//! Projects in memory: what resolves, and every mistake with its code and place.

mod errors;
mod resolved;

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result};
use deltaic_plan::{Session, SessionOptions};
use deltaic_sql::ReadFiles;

use super::{FileSchemas, Graph, resolve};
use crate::{Project, SqlFile};

/// Files have the declared schema, else `id BIGINT, v STRING, ts TIMESTAMP`.
struct Fake<'a>(&'a Session);

impl FileSchemas for Fake<'_> {
    fn versions(&self, _call: &ReadFiles) -> Result<Option<crate::files::FileVersions>> {
        Ok(None)
    }

    fn schema(&self, call: &ReadFiles) -> Result<SchemaRef> {
        if call.path == "missing" {
            return Err(Error::user("PATH_NOT_FOUND", "there is nothing there"));
        }
        let declared = call.options.get("schema").map(String::as_str);
        self.0.parse_schema(declared.unwrap_or("id BIGINT, v STRING, ts TIMESTAMP"))
    }

    fn external(&self, _path: &str) -> Result<SchemaRef> {
        self.0.parse_schema("id BIGINT, w DOUBLE")
    }

    fn external_delta(&self, path: &str) -> Result<SchemaRef> {
        self.external(path)
    }
}

fn project(files: &[(&str, &str)]) -> Project {
    let file = |(path, text): &(&str, &str)| SqlFile { path: (*path).into(), text: (*text).into() };
    Project {
        root: PathBuf::new(),
        name: "p".into(),
        storage: PathBuf::new(),
        catalog: Some("main".into()),
        schema: "default".into(),
        configuration: BTreeMap::from([("a".to_owned(), "project".to_owned())]),
        files: files.iter().map(file).collect(),
        uncovered: Vec::new(),
    }
}

fn resolve_files(files: &[(&str, &str)]) -> Result<Graph, Vec<Error>> {
    let options = SessionOptions { time_zone: "UTC".into(), now_us: None };
    let session = Session::try_new(options).unwrap();
    resolve(&project(files), &session, &Fake(&session))
}

/// The graph of one file that has no errors.
fn graph(text: &str) -> Graph {
    match resolve_files(&[("a.sql", text)]) {
        Ok(graph) => graph,
        Err(errors) => panic!("{text}\n{errors:#?}"),
    }
}

/// `CODE line:column object` of each error of one file.
fn errors(text: &str) -> Vec<String> {
    let errors = resolve_files(&[("a.sql", text)]).expect_err(text);
    let one = |e: &Error| {
        let at = e.location().map_or("-".into(), |l| format!("{}:{}", l.line, l.column));
        format!("{} {at} {}", e.code(), e.get_object().unwrap_or("-"))
    };
    errors.iter().map(one).collect()
}

/// The only error of one file.
fn error(text: &str) -> Error {
    let mut errors = resolve_files(&[("a.sql", text)]).expect_err(text);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.remove(0)
}

/// A bronze table with columns id, v, ts.
const BRONZE: &str = "CREATE STREAMING TABLE b AS SELECT * FROM STREAM read_files('in');\n";
