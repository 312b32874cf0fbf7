//! What a join is asked for, and the checks of it.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use deltaic_batch::{Error, Result};
use deltaic_state::{AccumulatorType, GroupSpec, SlotSpec};

use super::side::{Lone, Side};
use crate::{Algebra, Evaluator, OperatorSpec};

/// Which rows a join keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Every pair that matches.
    Inner,
    /// Every pair, and each left row without a match once per copy, padded with NULL.
    Left,
    /// Every pair, and each right row without a match, padded with NULL on the left.
    Right,
    /// Every pair, and the unmatched rows of both sides, padded.
    Full,
    /// The left rows that have a match.
    LeftSemi,
    /// The left rows that have no match.
    LeftAnti,
}

impl JoinKind {
    /// Pairs are part of the output (not so for semi and anti joins).
    pub(crate) fn emits_pairs(self) -> bool {
        !matches!(self, Self::LeftSemi | Self::LeftAnti)
    }

    /// Which rows of the left and of the right side are emitted alone.
    fn lone(self) -> (Lone, Lone) {
        match self {
            Self::Inner => (Lone::Never, Lone::Never),
            Self::Left | Self::LeftAnti => (Lone::Unmatched, Lone::Never),
            Self::Right => (Lone::Never, Lone::Unmatched),
            Self::Full => (Lone::Unmatched, Lone::Unmatched),
            Self::LeftSemi => (Lone::Matched, Lone::Never),
        }
    }

    /// All columns that a join of this kind may have in its output.
    pub fn columns(self, left: &Schema, right: &Schema) -> Vec<usize> {
        let right = if self.emits_pairs() { right.fields().len() } else { 0 };
        (0..left.fields().len() + right).collect()
    }

    /// The operator's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inner => "InnerJoin",
            Self::Left => "LeftJoin",
            Self::Right => "RightJoin",
            Self::Full => "FullJoin",
            Self::LeftSemi => "LeftSemiJoin",
            Self::LeftAnti => "LeftAntiJoin",
        }
    }
}

/// What a join is asked for.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    /// Columns of the left input.
    pub left: SchemaRef,
    /// Columns of the right input.
    pub right: SchemaRef,
    /// Which rows are kept.
    pub kind: JoinKind,
    /// Pairs of equal columns (left, right), of equal type. Empty: every left row meets every right
    /// row, in one shard.
    pub on: Vec<(usize, usize)>,
    /// NULL keys match each other (`IS NOT DISTINCT FROM`, set operations).
    pub null_equals_null: bool,
    /// A further condition, over the left columns followed by the right ones; only TRUE matches.
    pub residual: Option<Arc<dyn Evaluator>>,
    /// Which columns the output has, of the left ones followed by the right ones (semi and anti joins
    /// have left ones only). Others are never gathered.
    pub columns: Vec<usize>,
    /// Those columns.
    pub output: SchemaRef,
    /// One line for explain.
    pub detail: String,
}

/// Joins two inputs: the left one is input 0, the right one input 1. `docs/operators/join.md` has
/// the meaning of each kind, the incremental form and the cost.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{Join, JoinKind, JoinSpec, Operator, StepContext};
/// # use deltaic_state::Slot;
/// let table = |names: [&str; 2]| {
///     Schema::new(names.map(|name| Field::new(name, DataType::Int64, true)).to_vec())
/// };
/// let (orders, customers) = (table(["id", "customer"]), table(["customer", "tier"]));
/// let both: Vec<_> = orders.fields().iter().chain(customers.fields()).cloned().collect();
/// let (left, right) = (Arc::new(orders), Arc::new(customers));
/// let join = Join::try_new(JoinSpec {
///     left: left.clone(),
///     right: right.clone(),
///     kind: JoinKind::Left,
///     on: vec![(1, 0)],
///     null_equals_null: false,
///     residual: None,
///     columns: vec![0, 1, 2, 3],
///     output: Arc::new(Schema::new(both)),
///     detail: "customer".into(),
/// })?;
/// let mut state: Vec<Slot> =
///     join.spec().slots.iter().map(Slot::try_new).collect::<Result<_, _>>()?;
///
/// let mut step = |orders: &str, customers: &str| -> Result<String, deltaic_batch::Error> {
///     let inputs = [ZBatch::parse(&left, orders)?, ZBatch::parse(&right, customers)?];
///     let mut out: Vec<ZBatch> = Vec::new();
///     join.step(&inputs, &mut state, &mut out, &StepContext { epoch: 0, shard: 0, shards: 1 })?;
///     Ok(out.iter().map(ToString::to_string).collect())
/// };
/// assert_eq!(step("+ 7 | 1", "")?, "+ 7 | 1 | NULL | NULL\n");
/// assert_eq!(step("", "+ 1 | 3")?, "+ 7 | 1 | 1 | 3\n- 7 | 1 | NULL | NULL\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Join {
    pub(super) spec: OperatorSpec,
    pub(super) kind: JoinKind,
    pub(super) left: Side,
    pub(super) right: Side,
    pub(super) residual: Option<Arc<dyn Evaluator>>,
    /// Left columns, then right ones; what the residual sees.
    pub(super) pair: SchemaRef,
    /// Which of them the output has.
    pub(super) columns: Vec<usize>,
}

impl Join {
    /// Checks the request. Column numbers, key types and the output's types must fit.
    pub fn try_new(spec: JoinSpec) -> Result<Self> {
        check_keys(&spec)?;
        let pair = pair_schema(&spec.left, &spec.right);
        check_output(&spec, &pair)?;
        let (left_key, right_key): (Vec<_>, Vec<_>) = spec.on.iter().copied().unzip();
        let (left_lone, right_lone) = spec.kind.lone();
        let nulls = spec.null_equals_null;
        let left = Side::new(true, left_lone, &spec.left, left_key, nulls);
        let right = Side::new(false, right_lone, &spec.right, right_key, nulls);
        let groups = GroupSpec {
            key: left.key_types(),
            accumulators: vec![AccumulatorType::I64, AccumulatorType::I64],
        };
        let mut slots = vec![SlotSpec::Groups(groups), left.slot()];
        if spec.kind.emits_pairs() || spec.residual.is_some() {
            slots.push(right.slot());
        }
        let algebra =
            if spec.kind == JoinKind::Inner { Algebra::Bilinear } else { Algebra::NonLinear };
        let operator = OperatorSpec {
            name: spec.kind.name(),
            detail: spec.detail.clone(),
            inputs: vec![left.input(), right.input()],
            output: spec.output.clone(),
            slots,
            algebra,
            output_is_set: false,
        };
        let JoinSpec { kind, residual, columns, .. } = spec;
        Ok(Self { spec: operator, kind, left, right, residual, pair, columns })
    }
}

fn pair_schema(left: &Schema, right: &Schema) -> SchemaRef {
    Arc::new(Schema::new(left.fields().iter().chain(right.fields()).cloned().collect::<Vec<_>>()))
}

fn check_keys(spec: &JoinSpec) -> Result<()> {
    for &(l, r) in &spec.on {
        let (Some(left), Some(right)) = (spec.left.fields().get(l), spec.right.fields().get(r))
        else {
            return Err(Error::internal(
                "JOIN_KEY",
                format!("key columns {l} and {r} are beyond the inputs' columns"),
            ));
        };
        if left.data_type() != right.data_type() {
            return Err(Error::internal(
                "JOIN_KEY",
                format!(
                    "key columns '{}' and '{}' differ in type: {} and {}",
                    left.name(),
                    right.name(),
                    left.data_type(),
                    right.data_type()
                ),
            ));
        }
    }
    Ok(())
}

fn check_output(spec: &JoinSpec, pair: &SchemaRef) -> Result<()> {
    let known = if spec.kind.emits_pairs() { pair } else { &spec.left };
    let expected: Option<Vec<_>> =
        spec.columns.iter().map(|&column| known.fields().get(column)).collect();
    let same = |fields: &Vec<&Arc<Field>>| {
        let mut pairs = fields.iter().zip(spec.output.fields());
        fields.len() == spec.output.fields().len()
            && pairs.all(|(a, b)| a.data_type() == b.data_type())
    };
    if expected.as_ref().is_some_and(same) {
        return Ok(());
    }
    Err(Error::internal(
        "JOIN_OUTPUT",
        format!(
            "columns {:?} of {known:?} are not those of the output, {:?}",
            spec.columns, spec.output
        ),
    ))
}
