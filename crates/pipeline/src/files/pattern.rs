//! Date and timestamp patterns of Spark (`yyyy-MM-dd HH:mm:ss`) as chrono formats.

use deltaic_batch::{Error, Result};

/// The chrono format that means the same. Letters without a counterpart are refused.
pub(super) fn to_chrono(pattern: &str) -> Result<String> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\'' {
            for quoted in chars.by_ref().take_while(|q| *q != '\'') {
                literal(&mut out, quoted);
            }
            continue;
        }
        if !c.is_ascii_alphabetic() {
            literal(&mut out, c);
            continue;
        }
        let mut count = 1;
        while chars.next_if_eq(&c).is_some() {
            count += 1;
        }
        out.push_str(field(c, count).ok_or_else(|| {
            Error::user(
                "DATETIME_PATTERN",
                format!("'{c}' in the date pattern '{pattern}' is not supported"),
            )
            .hint("use y M d H h m s S a X Z E and quoted text")
        })?);
    }
    // A fraction brings its own dot in chrono.
    Ok(out.replace(".%.f", "%.f"))
}

fn literal(out: &mut String, c: char) {
    if c == '%' {
        out.push('%');
    }
    out.push(c);
}

fn field(letter: char, count: usize) -> Option<&'static str> {
    Some(match (letter, count) {
        ('y' | 'u', 2) => "%y",
        ('y' | 'u', _) => "%Y",
        ('M' | 'L', 1 | 2) => "%m",
        ('M' | 'L', 3) => "%b",
        ('M' | 'L', _) => "%B",
        ('d', _) => "%d",
        ('H', _) => "%H",
        ('h', _) => "%I",
        ('m', _) => "%M",
        ('s', _) => "%S",
        ('S', _) => "%.f",
        ('a', _) => "%p",
        ('E', 1..=3) => "%a",
        ('E', _) => "%A",
        ('D', _) => "%j",
        ('X' | 'x' | 'Z', _) => "%#z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::to_chrono;

    #[test]
    fn spark_patterns_become_chrono_formats() {
        assert_eq!(to_chrono("yyyy-MM-dd'T'HH:mm:ss.SSS").unwrap(), "%Y-%m-%dT%H:%M:%S%.f");
        assert_eq!(to_chrono("dd/MM/yy").unwrap(), "%d/%m/%y");
        assert_eq!(to_chrono("q").unwrap_err().code(), "DATETIME_PATTERN");
    }
}
