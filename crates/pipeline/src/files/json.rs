//! JSON values as slices of the text they stand in: numbers keep every digit.

use std::borrow::Cow;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// The number as written.
    Number(&'a str),
    String(Cow<'a, str>),
    /// Elements and the text of the whole.
    Array(Vec<Json<'a>>, &'a str),
    /// Fields in order and the text of the whole.
    Object(Vec<(Cow<'a, str>, Json<'a>)>, &'a str),
}

impl<'a> Json<'a> {
    /// Parses one value that fills the whole text.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let mut parser = Parser { text, bytes: text.as_bytes(), pos: 0 };
        let value = parser.value(0)?;
        parser.space();
        if parser.pos < text.len() {
            return Err(format!("unexpected text after the value, at column {}", parser.pos + 1));
        }
        Ok(value)
    }

    /// Parses values that follow each other, with their byte offsets (multi-line files).
    pub(super) fn parse_all(text: &'a str) -> Result<Vec<(usize, Self)>, (usize, String)> {
        let mut parser = Parser { text, bytes: text.as_bytes(), pos: 0 };
        let mut out = Vec::new();
        loop {
            parser.space();
            if parser.pos >= text.len() {
                return Ok(out);
            }
            let start = parser.pos;
            let value = parser.value(0).map_err(|e| (parser.pos, e))?;
            out.push((start, value));
        }
    }

    /// The value as JSON text.
    pub(super) fn to_text(&self) -> String {
        match self {
            Json::Null => "null".to_string(),
            Json::Bool(b) => b.to_string(),
            Json::Number(n) => (*n).to_string(),
            Json::String(s) => serde_json::Value::from(s.as_ref()).to_string(),
            Json::Array(_, raw) | Json::Object(_, raw) => (*raw).to_string(),
        }
    }
}

const DEPTH_MAX: usize = 128;

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("{what} at column {}", self.pos + 1))
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.pos), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, String> {
        if depth > DEPTH_MAX {
            return self.fail("nesting is too deep");
        }
        self.space();
        match self.bytes.get(self.pos) {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) => self.fail("a JSON value is expected"),
            None => self.fail("the text ends where a JSON value is expected"),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, String> {
        if self.text[self.pos..].starts_with(word) {
            self.pos += word.len();
            return Ok(value);
        }
        self.fail("a JSON value is expected")
    }

    fn digits(&mut self) -> usize {
        let start = self.pos;
        while matches!(self.bytes.get(self.pos), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        self.pos - start
    }

    fn number(&mut self) -> Result<Json<'a>, String> {
        let start = self.pos;
        if self.bytes[self.pos] == b'-' {
            self.pos += 1;
        }
        if self.digits() == 0 {
            return self.fail("a digit is expected");
        }
        if self.bytes.get(self.pos) == Some(&b'.') {
            self.pos += 1;
            if self.digits() == 0 {
                return self.fail("a digit is expected");
            }
        }
        if matches!(self.bytes.get(self.pos), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(self.bytes.get(self.pos), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            if self.digits() == 0 {
                return self.fail("a digit is expected");
            }
        }
        Ok(Json::Number(&self.text[start..self.pos]))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        self.pos += 1;
        let start = self.pos;
        loop {
            match self.bytes.get(self.pos) {
                None => return self.fail("a text is not closed"),
                Some(b'"') => {
                    let text = &self.text[start..self.pos];
                    self.pos += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => return self.escaped(start),
                Some(_) => self.pos += 1,
            }
        }
    }

    /// The rest of a text that has escapes.
    fn escaped(&mut self, start: usize) -> Result<Cow<'a, str>, String> {
        let mut out = self.text[start..self.pos].to_string();
        loop {
            let rest = &self.bytes[self.pos..];
            let Some(length) = rest.iter().position(|b| matches!(b, b'"' | b'\\')) else {
                return self.fail("a text is not closed");
            };
            out.push_str(&self.text[self.pos..self.pos + length]);
            self.pos += length + 1;
            if rest[length] == b'"' {
                return Ok(Cow::Owned(out));
            }
            let Some(escape) = self.bytes.get(self.pos).copied() else {
                return self.fail("a text is not closed");
            };
            self.pos += 1;
            match escape {
                b'"' | b'\\' | b'/' => out.push(char::from(escape)),
                b'b' => out.push('\u{8}'),
                b'f' => out.push('\u{c}'),
                b'n' => out.push('\n'),
                b'r' => out.push('\r'),
                b't' => out.push('\t'),
                b'u' => out.push(self.unicode()?),
                _ => return self.fail("an unknown escape"),
            }
        }
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let code =
            self.text.get(self.pos..self.pos + 4).and_then(|h| u32::from_str_radix(h, 16).ok());
        match code {
            Some(code) => {
                self.pos += 4;
                Ok(code)
            }
            None => self.fail("four hexadecimal digits are expected"),
        }
    }

    fn unicode(&mut self) -> Result<char, String> {
        let high = self.hex4()?;
        if !(0xd800..0xdc00).contains(&high) {
            return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if self.text[self.pos..].starts_with("\\u") {
            let back = self.pos;
            self.pos += 2;
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.pos = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, String> {
        let start = self.pos;
        self.pos += 1;
        let mut items = Vec::new();
        self.space();
        if self.bytes.get(self.pos) == Some(&b']') {
            self.pos += 1;
            return Ok(Json::Array(items, &self.text[start..self.pos]));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            match self.bytes.get(self.pos) {
                Some(b',') => self.pos += 1,
                Some(b']') => {
                    self.pos += 1;
                    return Ok(Json::Array(items, &self.text[start..self.pos]));
                }
                _ => return self.fail("',' or ']' is expected"),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, String> {
        let start = self.pos;
        self.pos += 1;
        let mut fields = Vec::new();
        self.space();
        if self.bytes.get(self.pos) == Some(&b'}') {
            self.pos += 1;
            return Ok(Json::Object(fields, &self.text[start..self.pos]));
        }
        loop {
            self.space();
            if self.bytes.get(self.pos) != Some(&b'"') {
                return self.fail("a field name in quotes is expected");
            }
            let name = self.string()?;
            self.space();
            if self.bytes.get(self.pos) != Some(&b':') {
                return self.fail("':' is expected");
            }
            self.pos += 1;
            fields.push((name, self.value(depth + 1)?));
            self.space();
            match self.bytes.get(self.pos) {
                Some(b',') => self.pos += 1,
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(Json::Object(fields, &self.text[start..self.pos]));
                }
                _ => return self.fail("',' or '}' is expected"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_slices_of_the_text() {
        let value = Json::parse(r#"{"a": [1.10, "x\né\ud83d\ude00"], "b": null} "#).unwrap();
        let Json::Object(fields, _) = value else { panic!("an object") };
        let Json::Array(items, raw) = &fields[0].1 else { panic!("an array") };
        assert_eq!(items[0], Json::Number("1.10"));
        assert_eq!(items[1], Json::String("x\né😀".into()));
        assert_eq!(*raw, r#"[1.10, "x\né\ud83d\ude00"]"#);
        assert_eq!(fields[1].1, Json::Null);
    }

    #[test]
    fn what_is_no_json_says_where() {
        assert!(Json::parse("{\"a\":}").unwrap_err().contains("column 6"));
        assert!(Json::parse("{} x").unwrap_err().contains("column 4"));
        assert!(Json::parse("01x").is_err());
        assert!(Json::parse(&"[".repeat(1000)).is_err());
        assert!(Json::parse("\"a").is_err());
    }

    #[test]
    fn several_values_in_one_text() {
        let all = Json::parse_all("{\"a\":\n1}\n{\"a\":2}").unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].0, 9);
    }
}
