//! Spark's generators: `explode`, `posexplode`, `inline`, their `_outer` kin, `LATERAL VIEW`, and
//! `UNNEST … WITH ORDINALITY`.
//!
//! Each is rewritten, before planning, to DataFusion's `unnest`: in a SELECT list to one `unnest` per
//! column, which go side by side, and in FROM to a lateral subquery with such a SELECT (see
//! `lateral`). A map is the lists of its keys and values; whether an argument is one must be told by the
//! number of names, since types are not known yet.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Join, JoinConstraint,
    JoinOperator, LateralView, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use deltaic_batch::{Error, Result};

/// Rewrites all generators of a query; a user error where one has a form that has no such rewrite.
pub(crate) fn mark(query: &mut Query) -> Result<()> {
    let mut generators = Generators { views: 0, tables: Vec::new() };
    match query.visit(&mut generators) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Generators {
    /// Lateral views without a name so far.
    views: usize,
    /// Names of the tables so far: those of outer queries come first.
    tables: Vec<String>,
}

impl VisitorMut for Generators {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.tables.extend(tables(select));
        let mut fields = Fields { tables: &self.tables };
        for table in &mut select.from {
            fields.of_generator(&mut table.relation);
            table.joins.iter_mut().for_each(|join| fields.of_generator(&mut join.relation));
        }
        for view in &mut select.lateral_views {
            let _ = view.lateral_view.visit(&mut fields);
        }
        if let Err(error) = self.lateral_views(select) {
            return ControlFlow::Break(error);
        }
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item_columns(item) {
                Ok(columns) => items.extend(columns),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        select.projection = items;
        ControlFlow::Continue(())
    }

    /// Within an expression, as in `explode(xs) + 1`.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Some(generator) = generator(expr).filter(|found| found.function == "explode") else {
            return ControlFlow::Continue(());
        };
        match generator.columns(Some(1)) {
            Ok(columns) => {
                columns.into_iter().for_each(|(column, _)| *expr = column);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match relation(factor) {
            Ok(Some(derived)) => {
                *factor = derived;
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Generators {
    /// Each `LATERAL VIEW` as a lateral join of all that comes before it.
    fn lateral_views(&mut self, select: &mut Select) -> Result<()> {
        for view in std::mem::take(&mut select.lateral_views) {
            let LateralView { lateral_view, lateral_view_name, lateral_col_alias, outer } = view;
            let mut generator = generator(&lateral_view).ok_or_else(|| {
                user(format!(
                    "LATERAL VIEW takes explode, posexplode or inline, not {lateral_view}"
                ))
            })?;
            generator.outer |= outer;
            // `LATERAL VIEW explode(a) AS x` has no name, but is parsed with `AS` for one.
            let name = match lateral_view_name.to_string() {
                name if name.eq_ignore_ascii_case("as") => {
                    self.views += 1;
                    Ident::with_quote('"', format!("lateral view {}", self.views))
                }
                _ => ident(&lateral_view_name)?,
            };
            let is_outer = std::mem::take(&mut generator.outer);
            let table = derived(&generator, &alias(name, lateral_col_alias))?;
            let mut from = std::mem::take(&mut select.from).into_iter();
            let mut first = from.next().ok_or_else(|| user("LATERAL VIEW needs a FROM".into()))?;
            for other in from {
                first
                    .joins
                    .push(join(other.relation, JoinOperator::CrossJoin(JoinConstraint::None)));
                first.joins.extend(other.joins);
            }
            let operator = match is_outer {
                false => JoinOperator::CrossJoin(JoinConstraint::None),
                true => JoinOperator::LeftOuter(JoinConstraint::On(Expr::Value(ValueWithSpan {
                    value: Value::Boolean(true),
                    span: datafusion::sql::sqlparser::tokenizer::Span::empty(),
                }))),
            };
            first.joins.push(join(table, operator));
            select.from = vec![first];
        }
        Ok(())
    }
}

fn join(relation: TableFactor, join_operator: JoinOperator) -> Join {
    Join { relation, global: false, join_operator }
}

fn alias(name: Ident, columns: Vec<Ident>) -> TableAlias {
    let columns = columns.into_iter();
    let columns = columns.map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    TableAlias { explicit: true, name, columns, at: None }
}

/// A generator and its argument.
struct Generator {
    function: &'static str,
    outer: bool,
    argument: Expr,
    /// Number of the first position, if positions are asked for by other means.
    ordinality: bool,
}

/// A call of a generator other than `unnest`.
fn generator(expr: &Expr) -> Option<Generator> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else {
        return None;
    };
    called(&name.to_string(), argument)
}

fn called(name: &str, argument: &Expr) -> Option<Generator> {
    let name = name.to_lowercase();
    let (base, outer) = match name.strip_suffix("_outer") {
        Some(base) => (base, true),
        None => (name.as_str(), false),
    };
    let function = ["explode", "posexplode", "inline"].into_iter().find(|known| *known == base)?;
    Some(Generator { function, outer, argument: argument.clone(), ordinality: false })
}

impl Generator {
    /// The calls of `unnest`, with the names that they have by themselves. `names` is how many there
    /// are to be, if that is known.
    fn columns(&self, names: Option<usize>) -> Result<Vec<(Expr, &'static str)>> {
        let is_map = names == Some(if self.function == "posexplode" { 3 } else { 2 });
        let outer = |list: &str| if self.outer { format!("__outer({list})") } else { list.into() };
        let entries = |list: &str| format!("unnest({})", outer(list));
        let mut columns = Vec::new();
        if self.function == "posexplode" {
            let list = if is_map { "__positions(map_keys(__arg))" } else { "__positions(__arg)" };
            columns.push((entries(list), "pos"));
        }
        match (self.function, is_map && !self.ordinality) {
            ("inline", _) => columns.push((format!("unnest({})", entries("__arg")), "")),
            (_, true) => {
                columns.push((entries("map_keys(__arg)"), "key"));
                columns.push((entries("map_values(__arg)"), "value"));
            }
            _ => columns.push((entries("__arg"), "col")),
        }
        if self.ordinality {
            columns.push(("unnest(__ordinals(__arg))".into(), "ordinality"));
        }
        if names.is_some_and(|names| names != columns.len() && self.function != "inline") {
            let message = format!(
                "{} yields {} columns, not as many as there are names",
                self.function,
                columns.len()
            );
            return Err(user(message));
        }
        columns.into_iter().map(|(sql, name)| Ok((self.filled(&sql)?, name))).collect()
    }

    fn filled(&self, sql: &str) -> Result<Expr> {
        filled(sql, &self.argument)
    }
}

/// An expression with `argument` in the place of `__arg`.
fn filled(sql: &str, argument: &Expr) -> Result<Expr> {
    let parsed = Parser::new(&GenericDialect {}).try_with_sql(sql);
    let mut expr =
        parsed.and_then(|mut parser| parser.parse_expr()).map_err(|e| super::parse::syntax(&e))?;
    let _ = expr.visit(&mut Fill(argument));
    Ok(expr)
}

/// Names of the tables that a SELECT reads.
fn tables(select: &Select) -> Vec<String> {
    let relations = select.from.iter().flat_map(|table| {
        [&table.relation].into_iter().chain(table.joins.iter().map(|join| &join.relation))
    });
    let name = |relation: &TableFactor| match relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(alias.name.value.to_lowercase()),
        TableFactor::Table { name, .. } => Some(name.0.last()?.as_ident()?.value.to_lowercase()),
        _ => None,
    };
    let views = select.lateral_views.iter();
    let views = views.filter_map(|view| view.lateral_view_name.0.last()?.as_ident());
    let views = views.map(|name| name.value.to_lowercase());
    relations.filter_map(name).chain(views).collect()
}

/// Writes `s.b` as a call where `s` is a column: DataFusion knows no fields of outer columns.
struct Fields<'a> {
    tables: &'a [String],
}

impl Fields<'_> {
    fn of_generator(&mut self, factor: &mut TableFactor) {
        let _ = match factor {
            TableFactor::Function { args, .. } => args.visit(self),
            TableFactor::Table { args: Some(args), .. } => args.args.visit(self),
            TableFactor::UNNEST { array_exprs, .. } => array_exprs.visit(self),
            _ => ControlFlow::Continue(()),
        };
    }
}

impl VisitorMut for Fields<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
        let is_table = parts.first().is_some_and(|p| self.tables.contains(&p.value.to_lowercase()));
        let base = if is_table { 2 } else { 1 };
        if parts.len() <= base {
            return ControlFlow::Continue(());
        }
        let mut field = match &parts[..base] {
            [column] => Expr::Identifier(column.clone()),
            column => Expr::CompoundIdentifier(column.to_vec()),
        };
        for name in &parts[base..] {
            let name = name.value.replace('\'', "''");
            match filled(&format!("get_field(__arg, '{name}')"), &field) {
                Ok(deeper) => field = deeper,
                Err(_) => return ControlFlow::Continue(()),
            }
        }
        *expr = field;
        ControlFlow::Continue(())
    }
}

struct Fill<'a>(&'a Expr);

impl VisitorMut for Fill<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Identifier(ident) if ident.value == "__arg") {
            *expr = self.0.clone();
        }
        ControlFlow::Continue(())
    }
}

/// An item of a SELECT list, a generator as one item per column.
fn item_columns(item: SelectItem) -> Result<Vec<SelectItem>> {
    let (expr, names) = match &item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(vec![alias.clone()])),
        SelectItem::ExprWithAliases { expr, aliases } => (expr, Some(aliases.clone())),
        _ => return Ok(vec![item]),
    };
    let Some(generator) = generator(expr) else { return Ok(vec![item]) };
    let columns = generator.columns(names.as_ref().map(Vec::len))?;
    if generator.function == "inline" && names.is_some() {
        return Err(user(
            "inline has the names of the fields: use it in FROM to give others".into(),
        ));
    }
    let names = names.map(|names| names.into_iter().map(Some)).into_iter().flatten();
    let names = names.chain(std::iter::repeat(None));
    Ok(columns
        .into_iter()
        .zip(names)
        .map(|((expr, own), name)| match (name, own) {
            (None, "") => SelectItem::UnnamedExpr(expr),
            (None, own) => SelectItem::ExprWithAlias { expr, alias: Ident::new(own) },
            (Some(alias), _) => SelectItem::ExprWithAlias { expr, alias },
        })
        .collect())
}

/// A generator in FROM as a lateral subquery; `None` for anything else.
fn relation(factor: &TableFactor) -> Result<Option<TableFactor>> {
    let (name, args, alias, with_ordinality) = match factor {
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (name.to_string(), args.as_slice(), alias, *with_ordinality)
        }
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
            (name.to_string(), args.args.as_slice(), alias, *with_ordinality)
        }
        TableFactor::UNNEST { alias, array_exprs, with_offset, with_ordinality, .. } => {
            let ([list], true) = (array_exprs.as_slice(), *with_ordinality) else {
                return match with_offset {
                    true => Err(user("use WITH ORDINALITY in place of WITH OFFSET".into())),
                    false => Ok(None),
                };
            };
            let generator = Generator {
                function: "explode",
                outer: false,
                argument: list.clone(),
                ordinality: true,
            };
            return derived(&generator, &alias_of(alias, "unnest")).map(Some);
        }
        _ => return Ok(None),
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = args else { return Ok(None) };
    let generator = match name.to_lowercase().as_str() {
        "unnest" => called("explode", argument),
        name => called(name, argument),
    };
    let Some(mut generator) = generator else { return Ok(None) };
    generator.ordinality = with_ordinality;
    derived(&generator, &alias_of(alias, &name)).map(Some)
}

fn alias_of(given: &Option<TableAlias>, name: &str) -> TableAlias {
    given.clone().unwrap_or_else(|| alias(Ident::new(name), Vec::new()))
}

/// `LATERAL (SELECT unnest(…) AS a, …) AS alias`
fn derived(generator: &Generator, alias: &TableAlias) -> Result<TableFactor> {
    let parsed = Parser::new(&GenericDialect {}).try_with_sql("SELECT 1");
    let mut subquery =
        parsed.and_then(|mut parser| parser.parse_query()).map_err(|e| super::parse::syntax(&e))?;
    let names = Some(alias.columns.len()).filter(|names| *names > 0);
    let columns = generator.columns(names)?.into_iter();
    if let SetExpr::Select(select) = subquery.body.as_mut() {
        select.projection = columns
            .map(|(expr, name)| match name {
                "" => SelectItem::UnnamedExpr(expr),
                name => SelectItem::ExprWithAlias { expr, alias: Ident::new(name) },
            })
            .collect();
    }
    let alias = Some(alias.clone());
    Ok(TableFactor::Derived { lateral: true, subquery, alias, sample: None })
}

fn ident(name: &ObjectName) -> Result<Ident> {
    let ident = name.0.last().and_then(|part| part.as_ident()).cloned();
    ident.ok_or_else(|| user(format!("{name} cannot be the name of a lateral view")))
}

fn user(message: String) -> Error {
    Error::user("INVALID_GENERATOR", message)
}
