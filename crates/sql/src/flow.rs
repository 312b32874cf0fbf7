//! `CREATE FLOW name [COMMENT s] AS INSERT INTO … | AUTO CDC INTO … | UPDATE INTO …`.

use crate::ast::{Flow, FlowBody, ParseError, Span};
use crate::cdc;
use crate::errors::unknown_clause;
use crate::query::{Placeholders, query};
use crate::tokens::Cursor;

/// The statement after `CREATE FLOW`.
pub(crate) fn flow(
    at: &mut Cursor<'_>,
    span: Span,
    placeholders: &mut Placeholders,
) -> Result<Flow, ParseError> {
    let name = at.name("the name of the flow")?;
    let mut comment = None;
    while !at.eat(&["AS"]) {
        if !at.eat(&["COMMENT"]) {
            return Err(unknown_clause(at, "CREATE FLOW", &["COMMENT", "AS"]));
        }
        comment = Some(at.string("a comment")?);
    }
    if at.eat(&["INSERT"]) {
        at.expect(&["INTO"])?;
        let once = at.eat(&["ONCE"]);
        let target = at.name("the table to insert into")?;
        if !at.eat(&["BY", "NAME"]) {
            let hint = "write INSERT INTO table BY NAME SELECT …: columns are matched by name";
            return Err(at.expected("BY NAME", Some(hint.into())));
        }
        let body = FlowBody::Query(query(at, placeholders)?);
        return Ok(Flow { name, comment, target, once, update: false, body, span });
    }
    if at.eat(&["UPDATE"]) {
        at.expect(&["INTO"])?;
        let target = at.name("the sink to update")?;
        let body = FlowBody::Query(query(at, placeholders)?);
        return Ok(Flow { name, comment, target, once: false, update: true, body, span });
    }
    if at.sees(&["AUTO"]) || at.sees(&["APPLY"]) {
        cdc::head(at)?;
        let once = at.eat(&["ONCE"]);
        at.expect(&["INTO"])?;
        let target = at.name("the table to keep")?;
        let body = FlowBody::Cdc(Box::new(cdc::clauses(at, placeholders)?));
        return Ok(Flow { name, comment, target, once, update: false, body, span });
    }
    Err(unknown_clause(at, "CREATE FLOW … AS", &["INSERT INTO", "AUTO CDC INTO", "UPDATE INTO"]))
}
