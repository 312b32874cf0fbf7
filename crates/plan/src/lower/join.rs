//! Joins: equal keys as columns, the rest of the condition as a residual.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::kernels::{boolean, cmp};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, JoinType, NullEquality};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use deltaic_batch::Result;
use deltaic_ops::{AggregateCall, AggregateFunction, ColumnRef, Evaluator, JoinKind};

use super::Lowering;
use super::range_join::RangeSides;
use super::words::Words;
use crate::errors;
use crate::evaluator::Expression;
use crate::tree::{Kind, NodeIx};

/// A join with its sides in the order that the operator takes them.
struct Sides<'a> {
    left: &'a LogicalPlan,
    right: &'a LogicalPlan,
    /// Key expressions of each side.
    on: Vec<(&'a Expr, &'a Expr)>,
    residual: Option<&'a Expr>,
    null_equals_null: bool,
}

/// A lowered side: the node, its key columns, and how many columns it has without added ones.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) node: NodeIx,
    pub(super) keys: Vec<usize>,
    pub(super) width: usize,
}

impl Lowering {
    pub(super) fn join(&mut self, plan: &LogicalPlan, join: &Join) -> Result<NodeIx> {
        let swap = matches!(
            join.join_type,
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
        );
        let on = join.on.iter().map(|(l, r)| if swap { (r, l) } else { (l, r) }).collect();
        let (left, right) =
            if swap { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let sides = Sides {
            left,
            right,
            on,
            residual: join.filter.as_ref(),
            null_equals_null: join.null_equality == NullEquality::NullEqualsNull,
        };
        if keys_differ(&sides)? || (join.null_aware && !simple_not_in(join)) {
            return self.hybrid(plan);
        }
        let l = self.lower(left)?;
        let l = self.side(l, left, sides.on.iter().map(|(l, _)| *l))?;
        let r = self.lower(right)?;
        let r = self.side(r, right, sides.on.iter().map(|(_, r)| *r))?;
        let output = crate::session::batch::relaxed(join.schema.as_arrow());
        match join.join_type {
            JoinType::Inner => self.pairs(JoinKind::Inner, &sides, &l, &r, &output),
            JoinType::Left => self.pairs(JoinKind::Left, &sides, &l, &r, &output),
            JoinType::Right => self.pairs(JoinKind::Right, &sides, &l, &r, &output),
            JoinType::Full => self.pairs(JoinKind::Full, &sides, &l, &r, &output),
            JoinType::LeftSemi | JoinType::RightSemi => {
                self.filtered(JoinKind::LeftSemi, &sides, &l, &r, &output)
            }
            JoinType::LeftAnti if join.null_aware => self.not_in(&sides, &l, &r, &output),
            JoinType::LeftAnti | JoinType::RightAnti => {
                self.filtered(JoinKind::LeftAnti, &sides, &l, &r, &output)
            }
            JoinType::LeftMark | JoinType::RightMark => self.mark(&sides, &l, &r, &output),
        }
    }

    /// Adds key expressions that are no columns as columns.
    pub(super) fn side<'a>(
        &mut self,
        node: NodeIx,
        plan: &LogicalPlan,
        keys: impl Iterator<Item = &'a Expr>,
    ) -> Result<Side> {
        let schema = plan.schema();
        let width = schema.fields().len();
        let mut added: Vec<(Arc<dyn PhysicalExpr>, Field)> = Vec::new();
        let mut columns = Vec::new();
        let mut names: Vec<String> =
            schema.fields().iter().map(|field| self.words.name(field.name())).collect();
        for key in keys {
            let physical = self.physical(key, schema)?;
            if let Some(column) = physical.downcast_ref::<Column>() {
                columns.push(column.index());
                continue;
            }
            let (_, field) = key.to_field(schema).map_err(|e| errors::planning(&e))?;
            columns.push(width + added.len());
            names.push(self.words.expr(key));
            added.push((physical, Field::new(key.to_string(), field.data_type().clone(), true)));
        }
        if added.is_empty() {
            return Ok(Side { node, keys: columns, width });
        }
        let input = self.tree.schema(node).clone();
        let mut spec = String::new();
        let mut all: Vec<(Arc<dyn Evaluator>, Field)> = (input.fields().iter().enumerate())
            .map(|(i, f)| (Arc::new(ColumnRef(i)) as Arc<dyn Evaluator>, f.as_ref().clone()))
            .collect();
        for (physical, field) in added {
            spec += &format!("{physical:?};");
            let evaluator = Expression::evaluator(physical, field.data_type().clone());
            all.push((evaluator, field));
        }
        let output = Arc::new(Schema::new(all.iter().map(|(_, f)| f.clone()).collect::<Vec<_>>()));
        let detail = super::list(names.into_iter());
        let kind = Kind::Project { columns: all };
        let node = self.tree.add(kind, vec![node], output, detail, &spec);
        Ok(Side { node, keys: columns, width })
    }

    /// A join node over both sides, with their added columns.
    fn raw_join(
        &mut self,
        kind: JoinKind,
        sides: &Sides<'_>,
        l: &Side,
        r: &Side,
    ) -> Result<NodeIx> {
        let (left, right) = (self.tree.schema(l.node).clone(), self.tree.schema(r.node).clone());
        let mut spec = format!("{:?} {:?} {}", l.keys, r.keys, sides.null_equals_null);
        let residual = match sides.residual {
            None => None,
            Some(expr) => {
                let pair = sides.left.schema().join(sides.right.schema());
                let pair = pair.map_err(|e| errors::planning(&e))?;
                let shift = left.fields().len() - l.width;
                let physical = self.residual(expr, &pair, l.width, shift)?;
                spec += &format!(" {physical:?}");
                Some(Expression::evaluator(physical, DataType::Boolean))
            }
        };
        let fields: Vec<_> = match kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti => left.fields().iter().cloned().collect(),
            _ => left.fields().iter().chain(right.fields()).cloned().collect(),
        };
        let on = l.keys.iter().copied().zip(r.keys.iter().copied()).collect();
        let detail = condition(&self.words, sides);
        let null_equals_null = sides.null_equals_null;
        let kind = Kind::Join { kind, on, null_equals_null, residual };
        Ok(self.tree.add(kind, vec![l.node, r.node], Arc::new(Schema::new(fields)), detail, &spec))
    }

    /// The condition over left columns, added left columns, right columns.
    pub(super) fn residual(
        &self,
        expr: &Expr,
        pair: &DFSchema,
        left_width: usize,
        shift: usize,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let physical = self.physical(expr, pair)?;
        physical
            .transform_up(|e| match e.downcast_ref::<Column>() {
                Some(c) if c.index() >= left_width && shift > 0 => Ok(Transformed::yes(Arc::new(
                    Column::new(c.name(), c.index() + shift),
                )
                    as Arc<dyn PhysicalExpr>)),
                _ => Ok(Transformed::no(e)),
            })
            .map(|e| e.data)
            .map_err(|e| errors::planning(&e))
    }

    fn pairs(
        &mut self,
        kind: JoinKind,
        sides: &Sides<'_>,
        l: &Side,
        r: &Side,
        output: &SchemaRef,
    ) -> Result<NodeIx> {
        if kind == JoinKind::Inner
            && sides.on.is_empty()
            && let Some(condition) = sides.residual
        {
            let (left, right) = ((sides.left, l.node), (sides.right, r.node));
            let range = RangeSides { left, right, condition };
            if let Some(node) = self.range_join(&range, output)? {
                return Ok(node);
            }
        }
        let node = self.raw_join(kind, sides, l, r)?;
        let left_width = self.tree.schema(l.node).fields().len();
        let kept: Vec<usize> = (0..l.width).chain(left_width..left_width + r.width).collect();
        Ok(self.columns(node, &kept, output))
    }

    fn filtered(
        &mut self,
        kind: JoinKind,
        sides: &Sides<'_>,
        l: &Side,
        r: &Side,
        output: &SchemaRef,
    ) -> Result<NodeIx> {
        let node = self.raw_join(kind, sides, l, r)?;
        let kept: Vec<usize> = (0..l.width).collect();
        Ok(self.columns(node, &kept, output))
    }

    /// All left rows with a flag that says whether they have a match.
    fn mark(
        &mut self,
        sides: &Sides<'_>,
        l: &Side,
        r: &Side,
        output: &SchemaRef,
    ) -> Result<NodeIx> {
        let mut halves = Vec::with_capacity(2);
        for (kind, flag) in [(JoinKind::LeftSemi, true), (JoinKind::LeftAnti, false)] {
            let node = self.raw_join(kind, sides, l, r)?;
            let mut columns: Vec<(Arc<dyn Evaluator>, Field)> = (0..l.width)
                .zip(output.fields())
                .map(|(i, f)| (Arc::new(ColumnRef(i)) as Arc<dyn Evaluator>, f.as_ref().clone()))
                .collect();
            if let Some(field) = output.fields().get(l.width) {
                columns.push((Arc::new(Flag(flag)), field.as_ref().clone()));
            }
            let spec = format!("{columns:?}");
            let kind = Kind::Project { columns };
            let detail = format!("matched = {flag}");
            halves.push(self.tree.add(kind, vec![node], output.clone(), detail, &spec));
        }
        self.union_all(halves, output.clone())
    }

    /// `x NOT IN (right)`: every left row while the right side is empty; none while it has a NULL;
    /// else the rows with a value that has no match.
    fn not_in(
        &mut self,
        sides: &Sides<'_>,
        l: &Side,
        r: &Side,
        output: &SchemaRef,
    ) -> Result<NodeIx> {
        let (Some(&left_key), Some(&right_key)) = (l.keys.first(), r.keys.first()) else {
            return Err(deltaic_batch::Error::internal("NOT_IN", "a NOT IN without a key"));
        };
        let empty = self.right_side_is(r.node, right_key, RightSide::Empty);
        let all = self.beside(l.node, empty)?;
        let anti = self.raw_join(JoinKind::LeftAnti, sides, l, r)?;
        let schema = self.tree.schema(anti).clone();
        let predicate = Arc::new(IsNotNull(left_key));
        let valued = self.tree.add(
            Kind::Filter { predicate },
            vec![anti],
            schema,
            "key IS NOT NULL".into(),
            &format!("not null {left_key}"),
        );
        let whole = self.right_side_is(r.node, right_key, RightSide::WithoutNull);
        let unmatched = self.beside(valued, whole)?;
        let kept: Vec<usize> = (0..l.width).collect();
        let halves =
            [all, unmatched].into_iter().map(|node| self.columns(node, &kept, output)).collect();
        self.union_all(halves, output.clone())
    }

    /// One row without columns of interest while the right side is as asked, else none.
    fn right_side_is(&mut self, right: NodeIx, key: usize, wanted: RightSide) -> NodeIx {
        let count = |function, input, name: &str| AggregateCall {
            function,
            distinct: false,
            input,
            filter: None,
            output: Field::new(name, DataType::Int64, true),
        };
        let calls = vec![
            count(AggregateFunction::CountStar, None, "rows"),
            count(AggregateFunction::Count, Some(key), "values"),
        ];
        let fields: Vec<Field> = calls.iter().map(|call| call.output.clone()).collect();
        let counts = Arc::new(Schema::new(fields));
        let spec = format!("{calls:?}");
        let kind = Kind::Aggregate { keys: Vec::new(), calls };
        let counted =
            self.tree.add(kind, vec![right], counts.clone(), "count(*), count(key)".into(), &spec);
        let text = format!("{wanted:?}");
        let kind = Kind::Filter { predicate: Arc::new(wanted) };
        let filtered = self.tree.add(kind, vec![counted], counts, text.clone(), &text);
        // Without the counts, a changed count of the same kind changes nothing above.
        let one = Arc::new(Schema::new(vec![Field::new("there", DataType::Boolean, true)]));
        let columns = vec![(Arc::new(Flag(true)) as Arc<dyn Evaluator>, one.field(0).clone())];
        self.tree.add(Kind::Project { columns }, vec![filtered], one, text.clone(), &text)
    }

    /// The rows of `node` while `gate` has its one row.
    fn beside(&mut self, node: NodeIx, gate: NodeIx) -> Result<NodeIx> {
        let (left, right) = (self.tree.schema(node).clone(), self.tree.schema(gate).clone());
        let fields: Vec<_> = left.fields().iter().chain(right.fields()).cloned().collect();
        let kind = Kind::Join {
            kind: JoinKind::Inner,
            on: Vec::new(),
            null_equals_null: false,
            residual: None,
        };
        let output = Arc::new(Schema::new(fields));
        Ok(self.tree.add(kind, vec![node, gate], output, "while true".into(), "gate"))
    }

    /// Joins two nodes on equal columns, NULL equal to NULL, and keeps all columns of both.
    pub(super) fn align(
        &mut self,
        left: NodeIx,
        right: NodeIx,
        keys: usize,
        kind: JoinKind,
    ) -> NodeIx {
        let fields: Vec<_> = (self.tree.schema(left).fields().iter())
            .chain(self.tree.schema(right).fields())
            .cloned()
            .collect();
        let spec = format!("{kind:?} {keys}");
        let kind = Kind::Join {
            kind,
            on: (0..keys).map(|i| (i, i)).collect(),
            null_equals_null: true,
            residual: None,
        };
        let output = Arc::new(Schema::new(fields));
        self.tree.add(kind, vec![left, right], output, "same group".into(), &spec)
    }
}

/// Key pairs of different type, which the operator does not compare.
fn keys_differ(sides: &Sides<'_>) -> Result<bool> {
    for (l, r) in &sides.on {
        let left = l.get_type(sides.left.schema()).map_err(|e| errors::planning(&e))?;
        let right = r.get_type(sides.right.schema()).map_err(|e| errors::planning(&e))?;
        if left != right {
            return Ok(true);
        }
    }
    Ok(false)
}

/// One key and no further condition.
fn simple_not_in(join: &Join) -> bool {
    join.join_type == JoinType::LeftAnti && join.on.len() == 1 && join.filter.is_none()
}

fn condition(words: &Words, sides: &Sides<'_>) -> String {
    let equals = if sides.null_equals_null { " IS NOT DISTINCT FROM " } else { " = " };
    let mut parts: Vec<String> = sides
        .on
        .iter()
        .map(|(l, r)| format!("{}{equals}{}", words.expr(l), words.expr(r)))
        .collect();
    parts.extend(sides.residual.map(|residual| words.expr(residual)));
    if parts.is_empty() { "every pair".into() } else { parts.join(" AND ") }
}

/// The same truth value for every row.
#[derive(Debug)]
struct Flag(bool);

impl Evaluator for Flag {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::from(vec![self.0; batch.num_rows()])))
    }
}

/// A column has a value.
#[derive(Debug)]
struct IsNotNull(usize);

impl Evaluator for IsNotNull {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        Ok(Arc::new(boolean::is_not_null(&ColumnRef(self.0).evaluate(batch)?)?))
    }
}

/// What the right side of a NOT IN is like, over its counts of rows and of values.
#[derive(Debug, Clone, Copy)]
enum RightSide {
    /// No rows.
    Empty,
    /// Rows, and a value in each.
    WithoutNull,
}

impl Evaluator for RightSide {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let rows = ColumnRef(0).evaluate(batch)?;
        let values = ColumnRef(1).evaluate(batch)?;
        let zero = arrow::array::Int64Array::new_scalar(0);
        let empty = cmp::eq(rows.as_primitive::<Int64Type>(), &zero)?;
        Ok(Arc::new(match self {
            Self::Empty => empty,
            Self::WithoutNull => {
                let (rows, values) =
                    (rows.as_primitive::<Int64Type>(), values.as_primitive::<Int64Type>());
                let complete = cmp::eq(rows, values)?;
                boolean::and(&complete, &boolean::not(&empty)?)?
            }
        }))
    }
}
