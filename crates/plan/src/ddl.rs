//! Column lists and type names as Spark writes them: `a INT, b STRUCT<x: STRING> NOT NULL`.

use std::sync::Arc;

use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use deltaic_batch::{Error, Location, Result};

/// Zone of timestamps that denote an instant.
const UTC: &str = "UTC";
/// Spark's DECIMAL without arguments.
const DECIMAL_DEFAULT: (u8, i8) = (10, 0);
/// Nesting that a type may have.
const DEPTH_MAX: usize = 64;

/// A column list as a schema.
pub(crate) fn parse_schema(ddl: &str) -> Result<SchemaRef> {
    let mut reader = Reader::try_new(ddl)?;
    let mut fields = Vec::new();
    while !reader.at_end() {
        fields.push(reader.field(false)?);
        if !reader.eat(",") {
            break;
        }
    }
    reader.finish()?;
    let mut seen = std::collections::BTreeSet::new();
    for field in &fields {
        if !seen.insert(field.name().to_lowercase()) {
            return Err(crate::errors::duplicate_column(field.name()));
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// One type name.
pub(crate) fn parse_type(text: &str) -> Result<DataType> {
    let mut reader = Reader::try_new(text)?;
    let data_type = reader.data_type()?;
    reader.finish()?;
    Ok(data_type)
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Word(String),
    Quoted(String),
    Text(String),
    Sign(char),
}

/// Reads pieces; each has its place.
struct Reader {
    pieces: Vec<(Piece, Location)>,
    next: usize,
    end: Location,
    depth: usize,
}

impl Reader {
    fn try_new(text: &str) -> Result<Self> {
        let (pieces, end) = split(text)?;
        Ok(Self { pieces, next: 0, end, depth: 0 })
    }

    fn at_end(&self) -> bool {
        self.next >= self.pieces.len()
    }

    fn peek(&self) -> Option<&Piece> {
        self.pieces.get(self.next).map(|(piece, _)| piece)
    }

    fn here(&self) -> Location {
        self.pieces.get(self.next).map_or_else(|| self.end.clone(), |(_, at)| at.clone())
    }

    fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            Some(Piece::Word(w) | Piece::Quoted(w) | Piece::Text(w)) => format!("'{w}'"),
            Some(Piece::Sign(c)) => format!("'{c}'"),
            None => "the end".into(),
        };
        Error::user("PARSE_SYNTAX_ERROR", format!("expected {what}, found {found}"))
            .at(self.here())
            .hint("a column list looks like: id INT NOT NULL, name STRING, tags ARRAY<STRING>")
    }

    /// Takes a sign or an unquoted word.
    fn eat(&mut self, what: &str) -> bool {
        let hit = match self.peek() {
            Some(Piece::Sign(c)) => what.len() == 1 && what.starts_with(*c),
            Some(Piece::Word(w)) => w.eq_ignore_ascii_case(what),
            _ => false,
        };
        self.next += usize::from(hit);
        hit
    }

    fn want(&mut self, what: &str) -> Result<()> {
        match self.eat(what) {
            true => Ok(()),
            false => Err(self.expected(&format!("'{what}'"))),
        }
    }

    fn finish(&self) -> Result<()> {
        match self.at_end() {
            true => Ok(()),
            false => Err(self.expected("',' or the end")),
        }
    }

    fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Piece::Word(w) | Piece::Quoted(w)) => {
                let name = w.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.expected("a name")),
        }
    }

    fn number<N: std::str::FromStr>(&mut self) -> Result<N> {
        if let Some(Piece::Word(w)) = self.peek()
            && let Ok(number) = w.parse()
        {
            self.next += 1;
            return Ok(number);
        }
        Err(self.expected("a number"))
    }

    fn field(&mut self, colon: bool) -> Result<Field> {
        let name = self.name()?;
        if colon {
            self.eat(":");
        }
        let data_type = self.data_type()?;
        let mut nullable = true;
        let mut comment = None;
        loop {
            if self.eat("NOT") {
                self.want("NULL")?;
                nullable = false;
            } else if self.eat("COMMENT") {
                let Some(Piece::Text(text)) = self.peek() else {
                    return Err(self.expected("a text in single quotes"));
                };
                comment = Some(text.clone());
                self.next += 1;
            } else if !self.eat("NULL") {
                break;
            }
        }
        let field = Field::new(name, data_type, nullable);
        Ok(match comment {
            Some(text) => field.with_metadata([("comment".to_owned(), text)].into()),
            None => field,
        })
    }

    fn data_type(&mut self) -> Result<DataType> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(
                Error::user("PARSE_SYNTAX_ERROR", "the type is nested too deeply").at(self.here())
            );
        }
        let at = self.here();
        let name = match self.peek() {
            Some(Piece::Word(w)) => w.to_uppercase(),
            _ => return Err(self.expected("a type")),
        };
        self.next += 1;
        let data_type = self.data_type_named(&name, at)?;
        self.depth -= 1;
        Ok(data_type)
    }

    fn data_type_named(&mut self, name: &str, at: Location) -> Result<DataType> {
        use DataType as T;
        Ok(match name {
            "BOOLEAN" | "BOOL" => T::Boolean,
            "BYTE" | "TINYINT" | "INT1" => T::Int8,
            "SHORT" | "SMALLINT" | "INT2" => T::Int16,
            "INT" | "INTEGER" | "INT4" => T::Int32,
            "LONG" | "BIGINT" | "INT8" | "INT64" => T::Int64,
            "REAL" | "FLOAT4" => T::Float32,
            "FLOAT" => self.float()?,
            "DOUBLE" => {
                self.eat("PRECISION");
                T::Float64
            }
            "FLOAT8" | "FLOAT64" => T::Float64,
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal(at)?,
            "STRING" | "TEXT" | "VARCHAR" | "CHAR" | "CHARACTER" => {
                self.eat("VARYING");
                self.skip_length()?;
                T::Utf8
            }
            "BINARY" | "VARBINARY" | "BYTEA" | "BLOB" => {
                self.skip_length()?;
                T::Binary
            }
            "DATE" => T::Date32,
            "TIME" => T::Time64(TimeUnit::Microsecond),
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMPTZ" | "TIMESTAMP_LTZ" => {
                self.skip_length()?;
                T::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
            }
            "TIMESTAMP_NTZ" | "DATETIME" => {
                self.skip_length()?;
                T::Timestamp(TimeUnit::Microsecond, None)
            }
            "INTERVAL" => T::Interval(IntervalUnit::MonthDayNano),
            "ARRAY" => {
                self.want("<")?;
                let item = self.data_type()?;
                self.want(">")?;
                T::List(Arc::new(Field::new_list_field(item, true)))
            }
            "MAP" => self.map()?,
            "STRUCT" => self.structure()?,
            _ => {
                return Err(Error::user(
                    "UNSUPPORTED_DATATYPE",
                    format!("'{name}' is not the name of a type"),
                )
                .at(at));
            }
        })
    }

    fn float(&mut self) -> Result<DataType> {
        if !self.eat("(") {
            return Ok(DataType::Float32);
        }
        let bits: u8 = self.number()?;
        self.want(")")?;
        Ok(if bits <= 24 { DataType::Float32 } else { DataType::Float64 })
    }

    fn decimal(&mut self, at: Location) -> Result<DataType> {
        let (mut precision, mut scale) = DECIMAL_DEFAULT;
        if self.eat("(") {
            precision = self.number()?;
            scale = if self.eat(",") { self.number()? } else { 0 };
            self.want(")")?;
        }
        let fits = (1..=DECIMAL128_MAX_PRECISION).contains(&precision)
            && u8::try_from(scale).is_ok_and(|scale| scale <= precision);
        match fits {
            true => Ok(DataType::Decimal128(precision, scale)),
            false => Err(Error::user(
                "UNSUPPORTED_DATATYPE",
                format!("DECIMAL({precision},{scale}) is beyond 38 digits or its own precision"),
            )
            .at(at)),
        }
    }

    fn skip_length(&mut self) -> Result<()> {
        if self.eat("(") {
            self.number::<u64>()?;
            self.want(")")?;
        }
        Ok(())
    }

    fn timestamp(&mut self) -> Result<DataType> {
        self.skip_length()?;
        let zone = if self.eat("WITHOUT") {
            None
        } else if self.eat("WITH") {
            self.eat("LOCAL");
            Some(UTC.into())
        } else {
            return Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())));
        };
        self.want("TIME")?;
        self.want("ZONE")?;
        Ok(DataType::Timestamp(TimeUnit::Microsecond, zone))
    }

    fn map(&mut self) -> Result<DataType> {
        self.want("<")?;
        let key = self.data_type()?;
        self.want(",")?;
        let value = self.data_type()?;
        self.want(">")?;
        let entries =
            Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
        Ok(DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false))
    }

    fn structure(&mut self) -> Result<DataType> {
        self.want("<")?;
        let mut fields = Vec::new();
        while !self.eat(">") {
            fields.push(self.field(true)?);
            if !self.eat(",") {
                self.want(">")?;
                break;
            }
        }
        Ok(DataType::Struct(fields.into()))
    }
}

/// Cuts a text into pieces with their places.
fn split(text: &str) -> Result<(Vec<(Piece, Location)>, Location)> {
    let mut pieces = Vec::new();
    let mut chars = text.chars().peekable();
    let mut at = Location { file: String::new(), line: 1, column: 1 };
    while let Some(c) = chars.next() {
        let start = at.clone();
        advance(&mut at, c);
        if c.is_whitespace() {
            continue;
        }
        let piece = if c == '\'' || c == '"' || c == '`' {
            let mut value = String::new();
            loop {
                let Some(inner) = chars.next() else {
                    return Err(
                        Error::user("PARSE_SYNTAX_ERROR", format!("{c} is never closed")).at(start)
                    );
                };
                advance(&mut at, inner);
                if inner == c && chars.next_if_eq(&c).is_none() {
                    break;
                } else if inner == c {
                    advance(&mut at, c);
                }
                value.push(inner);
            }
            if c == '\'' { Piece::Text(value) } else { Piece::Quoted(value) }
        } else if c.is_alphanumeric() || c == '_' {
            let mut word = String::from(c);
            while let Some(more) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                advance(&mut at, more);
                word.push(more);
            }
            Piece::Word(word)
        } else {
            Piece::Sign(c)
        };
        pieces.push((piece, start));
    }
    Ok((pieces, at))
}

fn advance(at: &mut Location, c: char) {
    if c == '\n' {
        at.line += 1;
        at.column = 1;
    } else {
        at.column += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_columns() {
        let schema = parse_schema(
            "a INT, b STRING NOT NULL COMMENT 'it''s', `C d` DECIMAL(10,2),\n t TIMESTAMP, n timestamp_ntz, g DOUBLE PRECISION",
        )
        .unwrap();
        let types: Vec<String> =
            schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect();
        assert_eq!(
            types,
            [
                "a Int32",
                "b Utf8",
                "C d Decimal128(10, 2)",
                "t Timestamp(µs, \"UTC\")",
                "n Timestamp(µs)",
                "g Float64"
            ]
        );
        assert!(!schema.field(1).is_nullable());
        assert_eq!(schema.field(1).metadata()["comment"], "it's");
    }

    #[test]
    fn nested_columns() {
        let schema =
            parse_schema("s STRUCT<a: INT, b: ARRAY<ARRAY<INT>>>, m MAP<STRING, INT>").unwrap();
        let DataType::Struct(fields) = schema.field(0).data_type() else { panic!("a struct") };
        assert_eq!(fields.len(), 2);
        assert!(matches!(fields[1].data_type(), DataType::List(_)));
        assert!(matches!(schema.field(1).data_type(), DataType::Map(_, false)));
    }

    #[test]
    fn mistakes_have_a_place() {
        let at = |ddl: &str| {
            let error = parse_schema(ddl).unwrap_err();
            let place = error.location().map(|l| (l.line, l.column));
            (error.code(), place)
        };
        assert_eq!(at("a INT,\n b WORD"), ("UNSUPPORTED_DATATYPE", Some((2, 4))));
        assert_eq!(at("a"), ("PARSE_SYNTAX_ERROR", Some((1, 2))));
        assert_eq!(at("a INT b INT"), ("PARSE_SYNTAX_ERROR", Some((1, 7))));
        assert_eq!(at("a INT, A INT").0, "COLUMN_ALREADY_EXISTS");
        assert_eq!(at("a DECIMAL(50,2)").0, "UNSUPPORTED_DATATYPE");
    }
}
