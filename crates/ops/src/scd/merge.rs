//! [`ScdMerge`]: merges change events into a type 1 or type 2 dimension.
//!
//! **Meaning.** `target = f(set of all events)`, for no order of arrival and no split into batches.
//! An event is an upsert, a delete or a truncate, and has a key and a sequence.
//! * Type 1: of each key the event with the greatest sequence decides; at equal sequence an upsert
//!   beats a delete. A truncate removes all rows whose sequence is at or below its own.
//! * Type 2: of each key, one event per sequence, where a delete beats an upsert; in order of
//!   sequence, a run of upserts whose tracked columns are equal is one version: it starts at the
//!   first one, has the values of the last one, and ends (exclusively) where the next version
//!   starts or at the delete.
//! * A NULL in a column under IGNORE NULL UPDATES keeps the latest value that is not NULL since
//!   the last delete.
//! * Two upserts that disagree at one sequence: the greater row wins (columns in the target's
//!   order, NULL least; an ignored column on its own), and [`ScdMerge::take_conflicts`] tells.
//!
//! **Incremental form.** The kept events of the touched keys and the new ones are brought into
//! [`Normal`] form; old and new [`Versions`] are walked and compared row by row. Cost: O(n log n)
//! for n = new events and kept events near them; of a key with many kept events only the stretch
//! around the new ones is read. A truncate reads everything.
//!
//! **State.** Slot 0: the events that can still matter, ordered by sequence: for type 1 at most two
//! per key and one per ignored column; for type 2 one per key and sequence, which includes deletes
//! and upserts that show in no version. Then, with truncates: the greatest truncate sequence. Then, with a
//! retention: the greatest sequence; what lies further behind it is kept only as far as it holds now.
//!
//! **Nulls.** A NULL key or sequence is refused (`AUTOCDC_MICROBATCH_VALIDATION`), except the key
//! of a truncate. NULL equals NULL among tracked columns. NULL is least in composite sequences.
//!
//! **Refuses.** Events with a negative weight: what has been merged cannot be taken back. A weight
//! above one is a duplicate and changes nothing.

use std::borrow::Cow;
use std::sync::atomic::{self, AtomicU64};
use std::sync::{Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::{Schema, SchemaRef};
use deltaic_batch::{Error, Result, ZBatch};
use deltaic_state::{Arrangement, ArrangementSpec, Slot, SlotSpec, SortKey};

use crate::scd::conflict::Conflicts;
use crate::scd::events::Events;
use crate::scd::gather;
use crate::scd::incoming::{Incoming, greatest};
use crate::scd::layout::Layout;
use crate::scd::normal::{Normal, Rules};
use crate::scd::retention::Horizon;
use crate::scd::touched;
use crate::scd::versions::{Versions, difference};
use crate::scd::{ScdSpec, ScdType};
use crate::{Algebra, Exchange, InputSpec, Operator, OperatorSpec, Output, StepContext};

/// Merges change events into a dimension; see the module.
#[derive(Debug)]
pub struct ScdMerge {
    spec: OperatorSpec,
    scd: ScdSpec,
    layout: Layout,
    conflicts: Mutex<Conflicts>,
    late: AtomicU64,
}

impl ScdMerge {
    /// Validates `scd` and prepares the merge.
    pub fn try_new(scd: ScdSpec) -> Result<Self> {
        scd.validate()?;
        let layout = Layout::try_new(&scd)?;
        let exchange = match scd.truncates || scd.retention.is_some() {
            true => Exchange::Single,
            false => Exchange::ByKey(scd.keys.clone()),
        };
        let spec = OperatorSpec {
            name: "ScdMerge",
            detail: detail(&scd),
            inputs: vec![InputSpec { schema: scd.input.clone(), exchange }],
            output: scd.target_schema()?,
            slots: slots(&scd, &layout),
            algebra: Algebra::NonLinear,
            output_is_set: true,
        };
        Ok(Self { spec, scd, layout, conflicts: Mutex::default(), late: AtomicU64::new(0) })
    }

    /// Checks events as a step does, without applying them: an error of a step leaves the state
    /// unusable, one found here does not.
    pub fn validate(&self, events: &ZBatch) -> Result<()> {
        Incoming::try_new(&self.scd, &self.layout, events).map(|_| ())
    }

    /// Takes the conflicts met since the last call, over all shards. Call it after each step. It
    /// counts events as they arrive: one that is delivered again counts again, and one that meets
    /// nothing but events which no longer matter is not seen.
    pub fn take_conflicts(&self) -> Conflicts {
        std::mem::take(&mut *self.conflicts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the number of events that came too late since the last call; see
    /// [`ScdSpec::retention`].
    pub fn take_late(&self) -> u64 {
        self.late.swap(0, atomic::Ordering::Relaxed)
    }

    fn rules<'a>(&'a self, dead: Option<&'a [bool]>) -> Rules<'a> {
        Rules { layout: &self.layout, scd_type: self.scd.scd_type, dead }
    }

    /// Old and new normal form of `events`, their difference to `out`, and what changes in state.
    fn merge(
        &self,
        events: &Events,
        bound: Option<&ArrayRef>,
        watermark: Option<u64>,
        out: &mut dyn Output,
    ) -> Result<ZBatch> {
        let before = self.rules(None);
        let old = Normal::new(before, events, |event| event < events.kept, |_| ());
        let old = Versions::new(before, events, &old);
        let dead = bound.map(|bound| events.at_or_below(bound)).transpose()?;
        let after = self.rules(dead.as_deref());
        let mut clashes = Vec::new();
        let normal = Normal::new(after, events, |_| true, |event| clashes.push(event));
        let new = Versions::new(after, events, &normal);
        let (gone, come) = difference(events, self.scd.scd_type, &old, &new);
        let sides = [(&old, gone.as_slice(), -1), (&new, come.as_slice(), 1)];
        gather::emit(&self.layout, &self.spec.output, self.scd.scd_type, events, sides, out)?;
        if !clashes.is_empty() {
            let mut conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
            conflicts.add(&self.layout, &events.columns, &clashes)?;
        }
        match watermark {
            None => gather::kept_change(&self.layout, events, &normal),
            Some(watermark) => {
                let unsettled = normal.unsettled(after, events, watermark);
                gather::kept_change(&self.layout, events, &unsettled)
            }
        }
    }
}

impl Operator for ScdMerge {
    fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    // A duplicate changes nothing.
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
        let [delta] = inputs else { return Err(wrong_arity()) };
        let mut delta = Cow::Borrowed(delta);
        if delta.weights().iter().any(|&weight| weight <= 0) {
            delta = Cow::Owned(delta.into_owned().consolidate()?);
        }
        if delta.is_empty() {
            return Ok(());
        }
        let Some((kept, mut rest)) = state.split_first_mut() else { return Err(wrong_arity()) };
        let kept = kept.rows()?;
        let mut incoming = Incoming::try_new(&self.scd, &self.layout, &delta)?;
        let mut bound = None;
        let mut is_whole = false;
        if self.scd.truncates {
            let Some((truncated, others)) = rest.split_first_mut() else {
                return Err(wrong_arity());
            };
            (bound, is_whole) = raise_bound(truncated.rows()?, incoming.truncate)?;
            rest = others;
        }
        let mut watermark = None;
        if let (Some(retention), Some(slot)) = (self.scd.retention, rest.first_mut()) {
            let slot = slot.rows()?;
            let mut horizon = Horizon::load(slot, retention)?;
            let late;
            (incoming.columns, late) =
                horizon.without_late(incoming.columns, self.layout.sequence())?;
            self.late.fetch_add(late, atomic::Ordering::Relaxed);
            is_whole |= horizon.advance(slot, &incoming.columns[self.layout.sequence()])?;
            watermark = horizon.watermark()?;
        }
        let events = if is_whole {
            touched::all(&self.layout, kept, &incoming.columns)?
        } else {
            touched::near(&self.layout, self.scd.scd_type, kept, incoming.columns)?
        };
        let change = self.merge(&events, bound.as_ref(), watermark, out)?;
        kept.apply(&change)
    }
}

/// The greatest truncate sequence, and whether it is another one than before.
fn raise_bound(
    truncated: &mut Arrangement,
    truncate: Option<ArrayRef>,
) -> Result<(Option<ArrayRef>, bool)> {
    let before = truncated.scan(1)?.pop();
    let Some(truncate) = truncate else {
        return Ok((before.map(|before| before.rows().column(0).clone()), false));
    };
    let schema: SchemaRef;
    let mut change = Vec::new();
    let after = match before {
        None => {
            schema = bound_schema(truncate.data_type().clone());
            truncate
        }
        Some(before) => {
            let both = concat(&[before.rows().column(0).as_ref(), truncate.as_ref()])?;
            let after = greatest(&both)?;
            if &after == before.rows().column(0) {
                return Ok((Some(after), false));
            }
            schema = before.schema();
            change.push(before.negate()?);
            after
        }
    };
    change.push(ZBatch::inserts(RecordBatch::try_new(schema.clone(), vec![after.clone()])?));
    truncated.apply(&ZBatch::concat(&schema, &change)?)?;
    Ok((Some(after), true))
}

fn bound_schema(sequence: arrow::datatypes::DataType) -> SchemaRef {
    let field = arrow::datatypes::Field::new("__sequence", sequence, true);
    std::sync::Arc::new(Schema::new(vec![field]))
}

fn slots(scd: &ScdSpec, layout: &Layout) -> Vec<SlotSpec> {
    let sequence = SortKey { column: layout.sequence(), descending: false, nulls_first: true };
    let mut slots = vec![SlotSpec::Rows(ArrangementSpec {
        schema: layout.schema.clone(),
        key: layout.keys.clone(),
        order: vec![sequence],
    })];
    if scd.truncates {
        let sequence = scd.input.field(scd.sequence).data_type().clone();
        slots.push(SlotSpec::Rows(ArrangementSpec {
            schema: bound_schema(sequence),
            key: vec![],
            order: vec![],
        }));
    }
    if scd.retention.is_some() {
        let sequence = scd.input.field(scd.sequence).data_type();
        slots.push(SlotSpec::Rows(Horizon::slot(sequence)));
    }
    slots
}

fn detail(scd: &ScdSpec) -> String {
    let names = |columns: &[usize]| -> String {
        let names: Vec<&str> =
            columns.iter().map(|&at| scd.input.field(at).name().as_str()).collect();
        names.join(", ")
    };
    let mut detail = match scd.scd_type {
        ScdType::Type1 => format!("type 1, keys ({})", names(&scd.keys)),
        ScdType::Type2 => {
            format!("type 2, keys ({}), tracked ({})", names(&scd.keys), names(&scd.tracked))
        }
    };
    if !scd.ignore_null.is_empty() {
        detail.push_str(&format!(", NULL ignored in ({})", names(&scd.ignore_null)));
    }
    if scd.truncates {
        detail.push_str(", truncates");
    }
    if let Some(retention) = scd.retention {
        detail.push_str(&format!(", up to {retention} late"));
    }
    detail
}

fn wrong_arity() -> Error {
    Error::internal("SCD_STEP", "an SCD merge has one input and its own state")
}
