//! Options of `read_files`, checked: an unknown name or value is the user's error.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result};
use deltaic_plan::Session;
use deltaic_sql::ReadFiles;

use crate::near::near_names;

/// What the files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Csv,
    Json,
    Parquet,
}

/// What happens to a row that does not fit the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What does not fit becomes NULL.
    Permissive,
    /// The row is left out.
    DropMalformed,
    /// The flow fails.
    FailFast,
}

/// What happens when new files have other columns than the files before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evolution {
    AddNewColumns,
    Rescue,
    FailOnNewColumns,
    None,
}

/// Checked options of one `read_files` call.
#[derive(Debug, Clone)]
pub(crate) struct FileOptions {
    pub(crate) path: String,
    pub(crate) format: Format,
    pub(crate) schema: Option<SchemaRef>,
    pub(crate) hints: Option<SchemaRef>,
    pub(crate) header: bool,
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) comment: Option<u8>,
    pub(crate) null_value: Option<String>,
    pub(crate) date_format: Option<String>,
    pub(crate) timestamp_format: Option<String>,
    pub(crate) encoding: String,
    pub(crate) multi_line: bool,
    pub(crate) mode: Option<Mode>,
    pub(crate) corrupt_column: Option<String>,
    pub(crate) rescued_column: Option<String>,
    pub(crate) evolution: Option<Evolution>,
    pub(crate) infer_types: bool,
    pub(crate) name_pattern: Option<glob::Pattern>,
    pub(crate) recursive: bool,
    pub(crate) ignore_missing: bool,
    pub(crate) allow_overwrites: bool,
    pub(crate) version_pattern: Option<String>,
    pub(crate) version_column: Option<String>,
}

/// Every option, by its name without underscores in lower case.
const KNOWN: &[&str] = &[
    "format",
    "schema",
    "schemaHints",
    "header",
    "delimiter",
    "sep",
    "quote",
    "escape",
    "comment",
    "nullValue",
    "dateFormat",
    "timestampFormat",
    "encoding",
    "charset",
    "multiLine",
    "mode",
    "columnNameOfCorruptRecord",
    "rescuedDataColumn",
    "schemaEvolutionMode",
    "inferColumnTypes",
    "inferSchema",
    "fileNamePattern",
    "glob",
    "pathGlobFilter",
    "recursiveFileLookup",
    "ignoreMissingFiles",
    "allowOverwrites",
    "reprocessModified",
    "caseSensitive",
    "onTypeMismatch",
    "versionPattern",
    "versionColumn",
];

impl FileOptions {
    /// Checks the options of a call.
    pub(crate) fn parse(call: &ReadFiles, session: &Session) -> Result<Self> {
        let given = Given::new(call)?;
        let schema = |name: &str| -> Result<Option<SchemaRef>> {
            given
                .text(name)
                .map(|ddl| {
                    session.parse_schema(ddl).map_err(|e| e.object(format!("{name} of read_files")))
                })
                .transpose()
        };
        let format = given.format(&call.path)?;
        let rescued = match given.text("onTypeMismatch") {
            None => given.text("rescuedDataColumn").map(str::to_string),
            Some(v) if v.eq_ignore_ascii_case("rescue") => {
                Some(given.text("rescuedDataColumn").unwrap_or("_rescued").to_string())
            }
            Some(v) if v.eq_ignore_ascii_case("fail") => None,
            Some(v) => return Err(given.bad("onTypeMismatch", v, "rescue, fail")),
        };
        let evolution = given.evolution()?;
        let rescued = match evolution {
            Some(Evolution::Rescue) => rescued.or_else(|| Some("_rescued_data".to_string())),
            _ => rescued,
        };
        if given.flag("caseSensitive")?.unwrap_or(false) {
            return Err(given
                .bad("caseSensitive", "true", "false")
                .hint("column names match without regard to case"));
        }
        Ok(Self {
            path: call.path.clone(),
            format,
            schema: schema("schema")?,
            hints: schema("schemaHints")?,
            header: given.flag("header")?.unwrap_or(false),
            delimiter: given.byte("delimiter")?.or(given.byte("sep")?).unwrap_or(b','),
            quote: given.byte_or_none("quote", Some(b'"'))?,
            escape: given.byte_or_none("escape", None)?,
            comment: given.byte_or_none("comment", None)?,
            null_value: given.text("nullValue").map(str::to_string),
            date_format: given.pattern("dateFormat")?,
            timestamp_format: given.pattern("timestampFormat")?,
            encoding: given
                .text("encoding")
                .or(given.text("charset"))
                .unwrap_or("utf-8")
                .to_ascii_lowercase(),
            multi_line: given.flag("multiLine")?.unwrap_or(false),
            mode: given.mode()?,
            corrupt_column: given.text("columnNameOfCorruptRecord").map(str::to_string),
            rescued_column: rescued,
            evolution,
            infer_types: given
                .flag("inferColumnTypes")?
                .or(given.flag("inferSchema")?)
                .unwrap_or(true),
            name_pattern: given.glob()?,
            recursive: given.flag("recursiveFileLookup")?.unwrap_or(true),
            ignore_missing: given.flag("ignoreMissingFiles")?.unwrap_or(false),
            allow_overwrites: given
                .flag("allowOverwrites")?
                .or(given.flag("reprocessModified")?)
                .unwrap_or(false),
            version_pattern: given.text("versionPattern").map(str::to_string),
            version_column: given.text("versionColumn").map(str::to_string),
        })
    }

    /// Mode in force: an explicit one, else NULLs when they are asked to be kept apart, else fail.
    pub(crate) fn effective_mode(&self) -> Mode {
        match self.mode {
            Some(mode) => mode,
            None if self.corrupt_column.is_some() => Mode::Permissive,
            None => Mode::FailFast,
        }
    }
}

/// Options as given, with typed access.
struct Given<'a> {
    options: BTreeMap<String, &'a str>,
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

impl<'a> Given<'a> {
    fn new(call: &'a ReadFiles) -> Result<Self> {
        let known: Vec<String> = KNOWN.iter().map(|n| plain(n)).collect();
        let mut options = BTreeMap::new();
        for (name, value) in &call.options {
            if !known.contains(&plain(name)) {
                let near = near_names(&plain(name), KNOWN.iter().copied());
                let error = Error::user(
                    "UNKNOWN_FILE_OPTION",
                    format!("read_files has no option '{name}'"),
                );
                return Err(match near.as_slice() {
                    [] => error.hint(format!("options are: {}", KNOWN.join(", "))),
                    near => error.hint(format!("did you mean {}?", near.join(" or "))),
                });
            }
            options.insert(plain(name), value.as_str());
        }
        Ok(Self { options })
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.options.get(&plain(name)).copied()
    }

    fn bad(&self, name: &str, value: &str, expected: &str) -> Error {
        Error::user(
            "FILE_OPTION_VALUE",
            format!("option {name} of read_files has the value '{value}'; it takes {expected}"),
        )
    }

    fn flag(&self, name: &str) -> Result<Option<bool>> {
        self.text(name)
            .map(|v| match v.to_ascii_lowercase().as_str() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(self.bad(name, v, "true or false")),
            })
            .transpose()
    }

    fn byte(&self, name: &str) -> Result<Option<u8>> {
        self.text(name)
            .map(|v| match v {
                "\\t" => Ok(b'\t'),
                "\\\\" => Ok(b'\\'),
                _ if v.len() == 1 && v.is_ascii() => Ok(v.as_bytes()[0]),
                _ => Err(self.bad(name, v, "one ASCII character")),
            })
            .transpose()
    }

    /// One character; an empty text switches the feature off.
    fn byte_or_none(&self, name: &str, default: Option<u8>) -> Result<Option<u8>> {
        match self.text(name) {
            None => Ok(default),
            Some("") => Ok(None),
            Some(_) => self.byte(name),
        }
    }

    fn pattern(&self, name: &str) -> Result<Option<String>> {
        self.text(name).map(super::pattern::to_chrono).transpose()
    }

    fn glob(&self) -> Result<Option<glob::Pattern>> {
        let name = ["fileNamePattern", "glob", "pathGlobFilter"];
        let given = name.iter().find_map(|n| self.text(n).map(|v| (*n, v)));
        given
            .map(|(n, v)| glob::Pattern::new(v).map_err(|_| self.bad(n, v, "a file name pattern")))
            .transpose()
    }

    fn mode(&self) -> Result<Option<Mode>> {
        self.text("mode")
            .map(|v| match v.to_ascii_lowercase().as_str() {
                "permissive" => Ok(Mode::Permissive),
                "dropmalformed" => Ok(Mode::DropMalformed),
                "failfast" => Ok(Mode::FailFast),
                _ => Err(self.bad("mode", v, "PERMISSIVE, DROPMALFORMED or FAILFAST")),
            })
            .transpose()
    }

    fn evolution(&self) -> Result<Option<Evolution>> {
        self.text("schemaEvolutionMode")
            .map(|v| match v.to_ascii_lowercase().as_str() {
                "addnewcolumns" => Ok(Evolution::AddNewColumns),
                "rescue" => Ok(Evolution::Rescue),
                "failonnewcolumns" => Ok(Evolution::FailOnNewColumns),
                "none" => Ok(Evolution::None),
                _ => Err(self.bad(
                    "schemaEvolutionMode",
                    v,
                    "addNewColumns, rescue, failOnNewColumns or none",
                )),
            })
            .transpose()
    }

    fn format(&self, path: &str) -> Result<Format> {
        let by_name = |v: &str| match v.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            "parquet" => Some(Format::Parquet),
            _ => None,
        };
        if let Some(v) = self.text("format") {
            return by_name(v).ok_or_else(|| self.bad("format", v, "csv, json or parquet"));
        }
        let plain = path.trim_end_matches(".gz").trim_end_matches(".zst");
        let suffix = plain.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        by_name(suffix).ok_or_else(|| {
            Error::user("FILE_FORMAT_MISSING", "read_files does not know the format of the files")
                .object(path)
                .hint("add format => 'csv', 'json' or 'parquet'")
        })
    }
}

#[cfg(test)]
impl FileOptions {
    /// Options of a call that gives none, for tests.
    pub(crate) fn plain(path: &str, format: Format) -> Self {
        Self {
            path: path.to_string(),
            format,
            schema: None,
            hints: None,
            header: false,
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            comment: None,
            null_value: None,
            date_format: None,
            timestamp_format: None,
            encoding: "utf-8".to_string(),
            multi_line: false,
            mode: None,
            corrupt_column: None,
            rescued_column: None,
            evolution: None,
            infer_types: true,
            name_pattern: None,
            recursive: true,
            ignore_missing: false,
            allow_overwrites: false,
            version_pattern: None,
            version_column: None,
        }
    }
}
