//! Parsing of a query: both quote characters, and identifiers without regard to case.
//!
//! DataFusion compares identifiers byte by byte and lowers unquoted ones only. We lower the quoted
//! ones too, before parsing, give DataFusion lower-case schemas, and put the spelling of the
//! definition back into the output schema (see `names`).

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, Query, Select, SelectItem, TableAlias, TableFactor, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location as Place, Token, TokenWithSpan, Tokenizer};
use deltaic_batch::{Error, Location, Result};

use crate::errors;

/// Nesting that the parser accepts.
const DEPTH_MAX: usize = 128;

/// A query and how its author spelled the names that it defines.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) query: Query,
    /// Lower-case alias to its spelling.
    pub(crate) aliases: HashMap<String, String>,
    /// Places of the tables named, by lower-case dot-joined name.
    pub(crate) relations: HashMap<String, Location>,
}

/// Parses one query; a semicolon may follow.
pub(crate) fn query(sql: &str) -> Result<Parsed> {
    let (tokens, spelled) = tokens(sql)?;
    let mut parser = Parser::new(&GenericDialect {})
        .with_recursion_limit(DEPTH_MAX)
        .with_tokens_with_locations(tokens);
    let query = parser.parse_query().map_err(|e| syntax(&e))?;
    while parser.consume_token(&Token::SemiColon) {}
    end(&parser)?;
    let mut names = Names { spelled, aliases: HashMap::new(), relations: HashMap::new() };
    let _ = query.visit(&mut names);
    Ok(Parsed { query: *query, aliases: names.aliases, relations: names.relations })
}

/// Parses one scalar expression.
pub(crate) fn expression(sql: &str) -> Result<Expr> {
    let (tokens, _) = tokens(sql)?;
    let mut parser = Parser::new(&GenericDialect {})
        .with_recursion_limit(DEPTH_MAX)
        .with_tokens_with_locations(tokens);
    let expr = parser.parse_expr().map_err(|e| syntax(&e))?;
    end(&parser)?;
    Ok(expr)
}

fn end(parser: &Parser<'_>) -> Result<()> {
    let next = parser.peek_token();
    if next.token == Token::EOF {
        return Ok(());
    }
    Err(Error::user("PARSE_SYNTAX_ERROR", format!("unexpected '{}' after the end", next.token))
        .at(place(next.span.start)))
}

type Spelled = HashMap<(u64, u64), String>;

/// Tokens with quoted identifiers lowered, and the original spelling of those by place.
fn tokens(sql: &str) -> Result<(Vec<TokenWithSpan>, Spelled)> {
    let mut tokens = Tokenizer::new(&GenericDialect {}, sql)
        .tokenize_with_location()
        .map_err(|e| syntax(&ParserError::TokenizerError(e.to_string())))?;
    let mut spelled = Spelled::new();
    for token in &mut tokens {
        let start = token.span.start;
        if let Token::Word(word) = &mut token.token
            && word.quote_style.is_some()
        {
            let lower = word.value.to_lowercase();
            let original = std::mem::replace(&mut word.value, lower);
            spelled.insert((start.line, start.column), original);
        }
    }
    Ok((tokens, spelled))
}

/// A parser's place as ours; the file is filled in by whoever knows it.
pub(crate) fn place(at: Place) -> Location {
    Location { file: String::new(), line: at.line, column: at.column }
}

pub(crate) fn syntax(error: &ParserError) -> Error {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => {
            return Error::user("PARSE_SYNTAX_ERROR", "the query is nested too deeply");
        }
    };
    let (message, location) = errors::split_place(text);
    let error = Error::user("PARSE_SYNTAX_ERROR", message.trim_start_matches("sql parser error: "));
    match location {
        Some(location) => error.at(location),
        None => error,
    }
}

/// Collects the names that a query defines.
struct Names {
    spelled: Spelled,
    aliases: HashMap<String, String>,
    relations: HashMap<String, Location>,
}

impl Names {
    fn define(&mut self, ident: &Ident) {
        let start = ident.span.start;
        let original = match ident.quote_style {
            Some(_) => self.spelled.get(&(start.line, start.column)).cloned(),
            None => Some(ident.value.clone()),
        };
        if let Some(original) = original {
            self.aliases.entry(original.to_lowercase()).or_insert(original);
        }
    }

    fn define_alias(&mut self, alias: &TableAlias) {
        for column in &alias.columns {
            self.define(&column.name);
        }
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.define_alias(&cte.alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.define(alias);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. } => self.define_alias(alias),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
        let parts: Vec<&Ident> = relation.0.iter().filter_map(|part| part.as_ident()).collect();
        if let Some(first) = parts.first() {
            let name: Vec<String> = parts.iter().map(|i| i.value.to_lowercase()).collect();
            self.relations.entry(name.join(".")).or_insert_with(|| place(first.span.start));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_quotes_and_the_spelling_of_aliases() {
        let parsed = query("SELECT \"A b\" AS \"C d\", `X` Yz FROM `T`;").unwrap();
        assert_eq!(parsed.query.to_string(), "SELECT \"a b\" AS \"c d\", `x` AS Yz FROM `t`");
        assert_eq!(parsed.aliases["c d"], "C d");
        assert_eq!(parsed.aliases["yz"], "Yz");
        assert_eq!(parsed.relations["t"].column, 36);
    }

    #[test]
    fn a_syntax_error_has_its_place() {
        let error = query("SELECT a\nFROM t WHERE )").unwrap_err();
        assert_eq!(error.code(), "PARSE_SYNTAX_ERROR");
        assert_eq!(error.location().unwrap().line, 2);
        let error = query("SELECT 1 SELECT").unwrap_err();
        assert_eq!(error.code(), "PARSE_SYNTAX_ERROR");
    }
}
