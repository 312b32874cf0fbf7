//! Distinct: each row once, however often it occurs in the input.
//!
//! **Meaning**: `distinct(R)(r) = 1` where `R(r) > 0`, else 0.
//!
//! **Incremental form**: the multiplicity of every row of the delta before and after; a row is
//! emitted with +1 when it rises above zero and with −1 when it falls back. O(rows of the delta).
//!
//! **State**: one counter per different row, dropped at zero.
//!
//! **Nulls**: NULL equals NULL.
//!
//! **Refuses**: columns of types that have no row encoding (unions).

use arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::Slot;

use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};
use crate::{input, multiplicity};

/// Most rows of one output piece.
const PIECE_ROWS_MAX: usize = 1 << 14;

/// The distinct operator.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use deltaic_batch::ZBatch;
/// # use deltaic_ops::{Distinct, Operator, StepContext};
/// # use deltaic_state::Slot;
/// let schema = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
/// let distinct = Distinct::try_new(schema.clone())?;
/// let mut state = vec![Slot::try_new(&distinct.spec().slots[0])?];
/// let mut out: Vec<ZBatch> = Vec::new();
/// let delta = ZBatch::parse(&schema, "+2 ann\n+ bo")?;
/// distinct.step(&[delta], &mut state, &mut out, &StepContext { epoch: 0, shard: 0, shards: 1 })?;
/// assert_eq!(out[0].to_string(), "+ ann\n+ bo\n");
/// # Ok::<(), deltaic_batch::Error>(())
/// ```
#[derive(Debug)]
pub struct Distinct {
    spec: OperatorSpec,
}

impl Distinct {
    /// Distinct rows of `schema`.
    pub fn try_new(schema: SchemaRef) -> Result<Self> {
        let types = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let slot = multiplicity::slot(types);
        // Refuses what cannot be a key.
        Slot::try_new(&slot)?;
        let exchange = Exchange::ByKey((0..schema.fields().len()).collect());
        let spec = OperatorSpec {
            name: "Distinct",
            detail: String::new(),
            inputs: vec![InputSpec { schema: schema.clone(), exchange }],
            output: schema,
            slots: vec![slot],
            algebra: Algebra::NonLinear,
            output_is_set: true,
        };
        Ok(Self { spec })
    }
}

impl Operator for Distinct {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    fn needs_consolidated(&self) -> bool {
        false
    }

    fn step(
        &self,
        inputs: &[ZBatch],
        state: &mut [Slot],
        out: &mut dyn Output,
        _cx: &StepContext,
    ) -> Result<()> {
        let delta = input(inputs, 0)?;
        if delta.is_empty() {
            return Ok(());
        }
        let [counts] = state else {
            return Err(Error::internal("SLOT_COUNT", "distinct has one slot"));
        };
        let rows = delta.rows();
        let crossed = multiplicity::count(counts.groups()?, rows.columns(), delta.weights())?;
        let pieces = crossed.rows.chunks(PIECE_ROWS_MAX);
        for (rows_of_piece, weights) in pieces.zip(crossed.weights.chunks(PIECE_ROWS_MAX)) {
            let indices = UInt32Array::from(rows_of_piece.to_vec());
            let columns = arrow::compute::take_arrays(rows.columns(), &indices, None)?;
            // A row without columns is a row, too.
            let options = RecordBatchOptions::new().with_row_count(Some(indices.len()));
            let piece = RecordBatch::try_new_with_options(rows.schema(), columns, &options)?;
            out.push(ZBatch::try_new(piece, weights.to_vec())?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use proptest::prelude::*;

    use super::*;

    fn schema() -> SchemaRef {
        let field = |name, data_type| Field::new(name, data_type, true);
        Arc::new(Schema::new(vec![field("a", DataType::Int64), field("b", DataType::Utf8)]))
    }

    fn run(distinct: &Distinct, state: &mut [Slot], delta: &str) -> String {
        let delta = ZBatch::parse(&schema(), delta).unwrap();
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: 1, shard: 0, shards: 1 };
        distinct.step(&[delta], state, &mut out, &cx).unwrap();
        out.iter().map(ToString::to_string).collect()
    }

    fn start() -> (Distinct, Vec<Slot>) {
        let distinct = Distinct::try_new(schema()).unwrap();
        let state = distinct.spec().slots.iter().map(|slot| Slot::try_new(slot).unwrap());
        let state = state.collect();
        (distinct, state)
    }

    #[test]
    fn a_row_stays_until_its_last_copy_goes() {
        let (distinct, mut state) = start();
        assert_eq!(run(&distinct, &mut state, "+2 1 | x\n+ 1 | NULL"), "+ 1 | x\n+ 1 | NULL\n");
        assert_eq!(run(&distinct, &mut state, "- 1 | x\n+ 1 | NULL"), "");
        assert_eq!(run(&distinct, &mut state, "- 1 | x\n-2 1 | NULL"), "- 1 | x\n- 1 | NULL\n");
        assert!(state[0].is_empty());
    }

    #[test]
    fn a_row_retracted_before_it_comes_is_awaited() {
        let (distinct, mut state) = start();
        assert_eq!(run(&distinct, &mut state, "- 1 | x"), "");
        assert_eq!(run(&distinct, &mut state, "+ 1 | x"), "");
        assert!(state[0].is_empty());
        assert_eq!(run(&distinct, &mut state, "+ 1 | x"), "+ 1 | x\n");
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            deltas in prop::collection::vec(prop::collection::vec((0..4_i64, 0..3_u8, -2..3_i64), 0..9), 0..9)
        ) {
            let (distinct, mut state) = start();
            let (mut all, mut emitted) = (BTreeMap::new(), BTreeMap::new());
            for delta in deltas {
                let mut text = String::new();
                for (a, b, weight) in delta {
                    let b = ["NULL", "x", "a string beyond twelve"][usize::from(b)];
                    let row = format!("{a} | {b}");
                    text += &format!("{weight:+} {row}\n");
                    *all.entry(row).or_insert(0) += weight;
                }
                let text = ZBatch::parse(&schema(), &text).unwrap().consolidate().unwrap();
                for line in run(&distinct, &mut state, &text.to_string()).lines() {
                    let (sign, row) = line.split_once(' ').unwrap();
                    let change = if sign == "+" { 1 } else { -1 };
                    *emitted.entry(row.to_owned()).or_insert(0) += change;
                }
                emitted.retain(|_, count| *count != 0);
                let expected: BTreeMap<String, i64> = all
                    .iter()
                    .filter(|&(_, &count)| count > 0)
                    .map(|(row, _)| (row.clone(), 1))
                    .collect();
                prop_assert_eq!(&emitted, &expected);
            }
        }
    }
}
