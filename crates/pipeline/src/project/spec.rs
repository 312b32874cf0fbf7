//! The project file: fields, their types, and where each stands.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deltaic_batch::{Error, Location, Result};
use serde_norway::{Mapping, Value};

use crate::near::near_names;

/// Names of project files, the usual one first.
pub(crate) const SPEC_NAMES: &[&str] =
    &["pipeline.yml", "pipeline.yaml", "spark-pipeline.yml", "spark-pipeline.yaml"];

const FIELDS: &[&str] =
    &["name", "storage", "catalog", "database", "schema", "configuration", "libraries"];

/// A glob of `libraries` and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    pub(super) include: String,
    pub(super) location: Option<Location>,
}

/// What the file says.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) storage: PathBuf,
    pub(super) catalog: Option<String>,
    pub(super) schema: String,
    pub(super) configuration: BTreeMap<String, String>,
    pub(super) globs: Vec<Glob>,
}

/// Reads the text of the project file called `file`.
pub(super) fn parse(text: &str, file: &str) -> Result<Spec> {
    let lines = Lines { text, file };
    let value: Value = serde_norway::from_str(text).map_err(|e| lines.syntax(&e))?;
    let map = match value {
        Value::Mapping(map) => map,
        Value::Null => Mapping::new(),
        _ => {
            let message = "the project file is not a list of fields";
            return Err(Error::user("PIPELINE_SPEC_FIELD_NOT_DICT", message)
                .at(lines.at(1))
                .hint("write name: my_pipeline"));
        }
    };
    let fields = known_fields(map, &lines)?;
    let text_of = |field: &str| -> Result<Option<String>> {
        fields.get(field).map(|v| string(v, field, &lines)).transpose()
    };
    if fields.contains_key("database") && fields.contains_key("schema") {
        let message = "'database' and 'schema' are two spellings of one field";
        return Err(Error::user("PIPELINE_SPEC_UNEXPECTED_FIELD", message)
            .at(lines.of_key("schema"))
            .hint("keep one of them"));
    }
    let Some(name) = text_of("name")? else {
        return Err(Error::user("PIPELINE_SPEC_MISSING_REQUIRED_FIELD", "field 'name' is missing")
            .at(lines.at(1))
            .hint("write name: my_pipeline"));
    };
    let storage = text_of("storage")?.unwrap_or_else(|| "storage".into());
    let schema = match text_of("database")? {
        Some(database) => Some(database),
        None => text_of("schema")?,
    };
    Ok(Spec {
        name,
        storage: storage_path(&storage, &lines)?,
        catalog: text_of("catalog")?,
        schema: schema.unwrap_or_else(|| "default".into()),
        configuration: configuration(fields.get("configuration"), &lines)?,
        globs: globs(fields.get("libraries"), &lines)?,
    })
}

fn known_fields(map: Mapping, lines: &Lines<'_>) -> Result<BTreeMap<String, Value>> {
    let mut fields = BTreeMap::new();
    for (key, value) in map {
        let Value::String(key) = key else {
            return Err(Error::user("PIPELINE_SPEC_DICT_KEY_NOT_STRING", "a field has no name")
                .at(lines.at(1)));
        };
        if !FIELDS.contains(&key.as_str()) {
            let near = near_names(&key, FIELDS.iter().copied());
            let hint = match near.first() {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("known fields: {}", FIELDS.join(", ")),
            };
            let message = format!("unknown field '{key}'");
            return Err(Error::user("PIPELINE_SPEC_UNEXPECTED_FIELD", message)
                .at(lines.of_key(&key))
                .hint(hint));
        }
        if value != Value::Null {
            fields.insert(key, value);
        }
    }
    Ok(fields)
}

fn string(value: &Value, field: &str, lines: &Lines<'_>) -> Result<String> {
    match value {
        Value::String(s) if !s.trim().is_empty() => Ok(s.clone()),
        other => {
            let message = format!("field '{field}' must be text, not {}", kind(other));
            Err(Error::user("PIPELINE_SPEC_FIELD_NOT_STRING", message)
                .at(lines.of_key(field))
                .hint("put the value in quotes"))
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "an empty text",
        Value::Sequence(_) => "a list",
        Value::Mapping(_) => "a map",
        Value::Tagged(_) => "a tagged value",
    }
}

fn storage_path(storage: &str, lines: &Lines<'_>) -> Result<PathBuf> {
    if let Some(path) = storage.strip_prefix("file://") {
        return Ok(PathBuf::from(path));
    }
    if storage.contains("://") {
        let message = format!("storage '{storage}' is not on a local file system");
        return Err(Error::user("PIPELINE_STORAGE_ROOT_INVALID", message)
            .at(lines.of_key("storage"))
            .hint("name a local folder"));
    }
    Ok(PathBuf::from(storage))
}

fn configuration(value: Option<&Value>, lines: &Lines<'_>) -> Result<BTreeMap<String, String>> {
    let map = match value {
        None => return Ok(BTreeMap::new()),
        Some(Value::Mapping(map)) => map,
        Some(other) => {
            let message = format!("field 'configuration' must be a map, not {}", kind(other));
            return Err(Error::user("PIPELINE_SPEC_FIELD_NOT_DICT", message)
                .at(lines.of_key("configuration")));
        }
    };
    let mut configuration = BTreeMap::new();
    for (key, value) in map {
        let Value::String(key) = key else {
            let message = "a key of 'configuration' is not text";
            return Err(Error::user("PIPELINE_SPEC_DICT_KEY_NOT_STRING", message)
                .at(lines.of_key("configuration"))
                .hint("put the key in quotes"));
        };
        let Value::String(value) = value else {
            let message = format!("the value of '{key}' must be text, not {}", kind(value));
            return Err(Error::user("PIPELINE_SPEC_DICT_VALUE_NOT_STRING", message)
                .at(lines.of_key(key))
                .hint("put the value in quotes"));
        };
        configuration.insert(key.clone(), value.clone());
    }
    Ok(configuration)
}

/// `[{glob: {include: X}}]`, X a file, or a folder and `/**`.
fn globs(value: Option<&Value>, lines: &Lines<'_>) -> Result<Vec<Glob>> {
    let list = match value {
        None => {
            return Ok(vec![Glob { include: "transformations/**".into(), location: None }]);
        }
        Some(Value::Sequence(list)) => list,
        Some(_) => return Err(not_a_glob("libraries", lines.of_key("libraries"))),
    };
    let mut globs = Vec::with_capacity(list.len());
    for (n, entry) in list.iter().enumerate() {
        let location = lines.of_include(n);
        let include = (entry.as_mapping().filter(|m| m.len() == 1))
            .and_then(|m| m.get("glob"))
            .and_then(Value::as_mapping)
            .filter(|m| m.len() == 1)
            .and_then(|m| m.get("include"))
            .and_then(Value::as_str);
        let Some(include) = include else {
            return Err(not_a_glob("libraries", location));
        };
        let stem = include.strip_suffix("/**").unwrap_or(include);
        if stem.is_empty() || stem.contains(['*', '?', '[', ']', '{', '}']) {
            let message = format!("glob '{include}' is neither a file nor a folder and /**");
            return Err(Error::user("PIPELINE_SPEC_INVALID_GLOB_PATTERN", message)
                .at(location)
                .hint("write include: transformations/** or include: path/to/file.sql"));
        }
        globs.push(Glob { include: include.to_owned(), location: Some(location) });
    }
    Ok(globs)
}

fn not_a_glob(field: &str, location: Location) -> Error {
    let message = format!("'{field}' must be a list of 'glob: {{include: …}}'");
    Error::user("PIPELINE_SPEC_INVALID_GLOB_PATTERN", message)
        .at(location)
        .hint("write\n    libraries:\n      - glob:\n          include: transformations/**")
}

/// Finds lines of fields (the YAML parser tells places of syntax errors only).
struct Lines<'a> {
    text: &'a str,
    file: &'a str,
}

impl Lines<'_> {
    fn at(&self, line: u64) -> Location {
        Location { file: self.file.to_owned(), line, column: 1 }
    }

    /// The first line that begins with the key, at any depth.
    fn of_key(&self, key: &str) -> Location {
        let is_key = |line: &str| {
            let line = line.trim_start().trim_start_matches("- ").trim_start();
            let line = line.trim_start_matches(['\'', '"']);
            (line.strip_prefix(key))
                .is_some_and(|rest| rest.trim_start_matches(['\'', '"', ' ']).starts_with(':'))
        };
        self.nth(0, is_key)
    }

    /// The n-th `include`.
    fn of_include(&self, n: usize) -> Location {
        self.nth(n, |line| !line.trim_start().starts_with('#') && line.contains("include"))
    }

    fn nth(&self, n: usize, wanted: impl Fn(&str) -> bool) -> Location {
        let found = self.text.lines().enumerate().filter(|(_, line)| wanted(line)).nth(n);
        let Some((at, line)) = found else {
            return self.at(1);
        };
        let column = (line.len() - line.trim_start().len()) as u64 + 1;
        Location { file: self.file.to_owned(), line: at as u64 + 1, column }
    }

    fn syntax(&self, e: &serde_norway::Error) -> Error {
        let location = e.location();
        let (line, column) = location.map_or((1, 1), |l| (l.line() as u64, l.column() as u64));
        let text = e.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text);
        Error::user("PIPELINE_SPEC_SYNTAX", message).at(Location {
            file: self.file.to_owned(),
            line,
            column: column.max(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code and place of what is wrong.
    fn fails(text: &str, code: &str, line: u64, column: u64) -> Error {
        let error = parse(text, "pipeline.yml").unwrap_err();
        let at = error.location().unwrap();
        assert_eq!((error.code(), at.line, at.column), (code, line, column), "{error}");
        assert_eq!(at.file, "pipeline.yml");
        error
    }

    #[test]
    fn wrong_fields_have_code_and_place() {
        fails("storage: x\n", "PIPELINE_SPEC_MISSING_REQUIRED_FIELD", 1, 1);
        fails("", "PIPELINE_SPEC_MISSING_REQUIRED_FIELD", 1, 1);
        let e = fails("name: a\nstorge: x\n", "PIPELINE_SPEC_UNEXPECTED_FIELD", 2, 1);
        assert_eq!(e.get_hint(), Some("did you mean 'storage'?"));
        fails("name: 3\n", "PIPELINE_SPEC_FIELD_NOT_STRING", 1, 1);
        fails("name: a\ndatabase: x\nschema: y\n", "PIPELINE_SPEC_UNEXPECTED_FIELD", 3, 1);
        fails("- a\n", "PIPELINE_SPEC_FIELD_NOT_DICT", 1, 1);
        fails("name: a\nconfiguration: x\n", "PIPELINE_SPEC_FIELD_NOT_DICT", 2, 1);
        let number = "name: a\nconfiguration:\n  retries: 3\n";
        fails(number, "PIPELINE_SPEC_DICT_VALUE_NOT_STRING", 3, 3);
        fails("name: a\nconfiguration:\n  1: x\n", "PIPELINE_SPEC_DICT_KEY_NOT_STRING", 2, 1);
        fails("name: a\nstorage: s3://b/x\n", "PIPELINE_STORAGE_ROOT_INVALID", 2, 1);
        fails("name: 'a\n", "PIPELINE_SPEC_SYNTAX", 2, 1);
    }

    #[test]
    fn wrong_globs_have_code_and_place() {
        let code = "PIPELINE_SPEC_INVALID_GLOB_PATTERN";
        fails("name: a\nlibraries: x\n", code, 2, 1);
        fails("name: a\nlibraries:\n  - glob:\n      include: a/*.sql\n", code, 4, 7);
        let two = "name: a\nlibraries:\n  - glob: {include: a/**}\n  - glob: {include: '**'}\n";
        fails(two, code, 4, 3);
        fails("name: a\nlibraries:\n  - file:\n      include: x\n", code, 4, 7);
    }
}
