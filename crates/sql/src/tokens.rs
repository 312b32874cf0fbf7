//! Text → tokens with byte places, and the cursor that the statement parsers read them with.

use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::ast::{Name, ParseError, Span, Spanned};

use crate::errors::{describe, error};

/// A token that is neither white space nor comment.
#[derive(Debug, Clone)]
pub(crate) struct Tok {
    /// As `sqlparser` sees it; its span is the place in the file.
    pub(crate) inner: TokenWithSpan,
    /// Its bytes in the file.
    pub(crate) span: Span,
    /// It is the first of its line.
    pub(crate) starts_line: bool,
}

impl Tok {
    /// The word if it is one without quotes.
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.inner.token {
            Token::Word(w) if w.quote_style.is_none() => Some(&w.value),
            _ => None,
        }
    }

    /// It is this word, without quotes, in any case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.word().is_some_and(|w| w.eq_ignore_ascii_case(word))
    }

    /// It is this punctuation.
    pub(crate) fn is_token(&self, token: &Token) -> bool {
        self.inner.token == *token
    }

    /// Name that it spells: a word, or quoted with `"` or `` ` ``.
    pub(crate) fn identifier(&self) -> Option<&str> {
        match &self.inner.token {
            Token::Word(w) => Some(&w.value),
            _ => None,
        }
    }

    /// Text of a string literal. A name in `"` counts where only a string can stand.
    pub(crate) fn string(&self) -> Option<&str> {
        match &self.inner.token {
            Token::SingleQuotedString(s)
            | Token::DoubleQuotedString(s)
            | Token::EscapedStringLiteral(s)
            | Token::NationalStringLiteral(s)
            | Token::SingleQuotedRawStringLiteral(s)
            | Token::DoubleQuotedRawStringLiteral(s) => Some(s),
            Token::Word(w) if w.quote_style == Some('"') => Some(&w.value),
            _ => None,
        }
    }
}

/// The tokens of a file, and the error that ends them early (an open string or comment).
pub(crate) fn tokenize(text: &str) -> (Vec<Tok>, Option<ParseError>) {
    let mut raw = Vec::new();
    let failed = Tokenizer::new(&GenericDialect {}, text)
        .with_unescape(true)
        .tokenize_with_location_into_buf(&mut raw)
        .err();
    let mut place = Place { text, byte: 0, line: 1, column: 1 };
    let mut toks = Vec::with_capacity(raw.len());
    let mut last_line = 0;
    for inner in raw {
        let start = place.advance(inner.span.start);
        let end = place.advance(inner.span.end);
        if matches!(inner.token, Token::Whitespace(_) | Token::EOF) {
            continue;
        }
        let (line, column) = (inner.span.start.line, inner.span.start.column);
        let span = Span { start, end, line, column };
        toks.push(Tok { inner, span, starts_line: line > last_line });
        last_line = line;
    }
    let failed = failed.map(|e| {
        let start = place.advance(e.location);
        let (line, column) = (e.location.line, e.location.column);
        let span = Span { start, end: text.len(), line, column };
        error(span, lower_first(&e.message), Some("close the quote or comment".into()))
    });
    (toks, failed)
}

fn lower_first(s: &str) -> String {
    let mut chars = s.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

/// Walks from line and column to bytes, forward only.
struct Place<'a> {
    text: &'a str,
    byte: usize,
    line: u64,
    column: u64,
}

impl Place<'_> {
    fn advance(&mut self, to: Location) -> usize {
        for c in self.text[self.byte..].chars() {
            if (self.line, self.column) >= (to.line, to.column) {
                break;
            }
            self.byte += c.len_utf8();
            if c == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.byte
    }
}

/// Reads the tokens of one statement, or of a part of it.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    /// The whole file.
    pub(crate) text: &'a str,
    /// Tokens of the part.
    pub(crate) toks: &'a [Tok],
    /// Next token.
    pub(crate) pos: usize,
    /// Place just behind the part, for errors at its end.
    pub(crate) end: Span,
}

impl<'a> Cursor<'a> {
    /// Over `toks`, which lie in `text`.
    pub(crate) fn new(text: &'a str, toks: &'a [Tok], end: Span) -> Self {
        Self { text, toks, pos: 0, end }
    }

    /// The token `n` ahead.
    pub(crate) fn peek(&self, n: usize) -> Option<&'a Tok> {
        self.toks.get(self.pos + n)
    }

    /// All has been read.
    pub(crate) fn at_end(&self) -> bool {
        self.pos >= self.toks.len()
    }

    /// Place of the next token, or the end.
    pub(crate) fn here(&self) -> Span {
        self.peek(0).map_or(self.end, |t| t.span)
    }

    /// The next tokens are these words.
    pub(crate) fn sees(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, w)| self.peek(n).is_some_and(|t| t.is(w)))
    }

    /// Steps over these words if they come next.
    pub(crate) fn eat(&mut self, words: &[&str]) -> bool {
        let seen = self.sees(words);
        if seen {
            self.pos += words.len();
        }
        seen
    }

    /// The next token is this punctuation.
    pub(crate) fn sees_token(&self, token: &Token) -> bool {
        self.peek(0).is_some_and(|t| t.is_token(token))
    }

    /// Steps over this punctuation if it comes next.
    pub(crate) fn eat_token(&mut self, token: &Token) -> bool {
        let seen = self.sees_token(token);
        if seen {
            self.pos += 1;
        }
        seen
    }

    /// `expected …, found …` at the next token.
    pub(crate) fn expected(&self, what: &str, hint: Option<String>) -> ParseError {
        let found = self.peek(0).map_or_else(|| "the end of the statement".into(), describe);
        error(self.here(), format!("expected {what}, found {found}"), hint)
    }

    /// These words, or an error.
    pub(crate) fn expect(&mut self, words: &[&str]) -> Result<(), ParseError> {
        for word in words {
            if !self.eat(&[word]) {
                return Err(self.expected(word, None));
            }
        }
        Ok(())
    }

    /// This punctuation, or an error.
    pub(crate) fn expect_token(&mut self, token: &Token) -> Result<(), ParseError> {
        if self.eat_token(token) {
            return Ok(());
        }
        Err(self.expected(&format!("'{token}'"), None))
    }

    /// One name.
    pub(crate) fn identifier(&mut self, what: &str) -> Result<Spanned<String>, ParseError> {
        match self.peek(0).and_then(|t| t.identifier().map(|i| (i, t.span))) {
            Some((value, span)) => {
                self.pos += 1;
                Ok(Spanned { value: value.to_owned(), span })
            }
            None => Err(self.expected(what, None)),
        }
    }

    /// A possibly qualified name; a leading `LIVE.` is dropped.
    pub(crate) fn name(&mut self, what: &str) -> Result<Name, ParseError> {
        let live = self.sees(&["LIVE"]);
        let first = self.identifier(what)?;
        let (mut span, mut parts) = (first.span, vec![first.value]);
        while self.eat_token(&Token::Period) {
            let part = self.identifier("a name after '.'")?;
            span.end = part.span.end;
            parts.push(part.value);
        }
        if live && parts.len() > 1 {
            parts.remove(0);
        }
        if parts.len() > 3 {
            let message = format!("'{}' has more than three parts", parts.join("."));
            return Err(error(span, message, Some("write catalog.schema.table at most".into())));
        }
        Ok(Name { parts, span })
    }

    /// A string literal.
    pub(crate) fn string(&mut self, what: &str) -> Result<String, ParseError> {
        match self.peek(0).and_then(Tok::string) {
            Some(s) => {
                self.pos += 1;
                Ok(s.to_owned())
            }
            None => Err(self.expected(&format!("{what} in quotes"), None)),
        }
    }

    /// The tokens between `(`, which comes next, and its `)`.
    pub(crate) fn parenthesised(&mut self, what: &str) -> Result<Cursor<'a>, ParseError> {
        let open = self.here();
        if !self.sees_token(&Token::LParen) {
            return Err(self.expected(&format!("'(' and {what}"), None));
        }
        let mut depth = 0_usize;
        for (n, t) in self.toks[self.pos..].iter().enumerate() {
            match t.inner.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let inner = &self.toks[self.pos + 1..self.pos + n];
                self.pos += n + 1;
                return Ok(Cursor::new(self.text, inner, t.span));
            }
        }
        Err(error(open, "this '(' is never closed".into(), None))
    }

    /// The part from here to the first token, outside of parentheses, where `stop` holds.
    pub(crate) fn until(&mut self, stop: impl Fn(&Cursor<'a>) -> bool) -> Cursor<'a> {
        let (start, mut depth) = (self.pos, 0_i64);
        while let Some(t) = self.peek(0) {
            if depth <= 0 && self.pos > start && stop(self) {
                break;
            }
            match t.inner.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            self.pos += 1;
        }
        Cursor::new(self.text, &self.toks[start..self.pos], self.here())
    }

    /// Place of all tokens of this part.
    pub(crate) fn span(&self) -> Span {
        match (self.toks.first(), self.toks.last()) {
            (Some(first), Some(last)) => Span { end: last.span.end, ..first.span },
            _ => self.end,
        }
    }

    /// Text of all tokens of this part.
    pub(crate) fn source(&self) -> &'a str {
        let span = self.span();
        if self.toks.is_empty() { "" } else { &self.text[span.start..span.end] }
    }

    /// An error unless all has been read.
    pub(crate) fn finish(&self, after: &str) -> Result<(), ParseError> {
        if self.at_end() {
            return Ok(());
        }
        Err(self.expected(&format!("the end of {after}"), None))
    }
}
