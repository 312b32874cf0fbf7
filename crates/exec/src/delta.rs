//! What flows from node to node in one epoch, and how it is spread over shards.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use deltaic_batch::{Error, Result, ZBatch, hash_columns, shard_of};
use deltaic_ops::Exchange;
use rayon::prelude::*;

/// Below this number of rows, all shards run on the calling thread. Tests take both ways.
pub(crate) const PARALLEL_ROWS: usize = if cfg!(test) { 8 } else { 8192 };

/// A node's output in one epoch: pieces per shard.
#[derive(Debug, Default)]
pub(crate) struct Delta {
    shards: Vec<Vec<ZBatch>>,
    rows: usize,
    /// Every row stands here once, with a weight that is not zero.
    is_consolidated: bool,
    /// No row stands here that cancels out without ever having been part of the node's output; a
    /// function that fails on such a row must not see it.
    is_sound: bool,
    /// The same delta spread by a key; for the next operator that asks for that.
    by_key: Vec<Spread>,
}

/// Pieces per shard, rows that are equal in the key in the same one.
#[derive(Debug)]
struct Spread {
    key: Vec<usize>,
    is_consolidated: bool,
    shards: Vec<Vec<ZBatch>>,
}

impl Delta {
    /// A source's delta: the sum of `batches`. A large one is spread over the shards row by row.
    pub(crate) fn of_source(batches: Vec<ZBatch>, shards: usize) -> Self {
        let rows: usize = batches.iter().map(ZBatch::num_rows).sum();
        // Equal rows do no harm before the first operator that needs consolidated rows; most need
        // none, or fewer columns.
        let is_sound = have_one_sign(&batches);
        let shards = spread_evenly(batches, rows, shards);
        Self { shards, rows, is_consolidated: false, is_sound, by_key: Vec::new() }
    }

    /// What an operator has pushed. `from_sound` says that it is a stateless linear operator over
    /// sound input, which cannot make up rows; `is_consolidated`, that it has pushed no row twice.
    pub(crate) fn of_operator(
        shards: Vec<Vec<ZBatch>>,
        from_sound: bool,
        is_consolidated: bool,
    ) -> Self {
        let rows = shards.iter().flatten().map(ZBatch::num_rows).sum();
        let is_sound = from_sound || is_consolidated || have_one_sign(shards.iter().flatten());
        Self { shards, rows, is_consolidated, is_sound, by_key: Vec::new() }
    }

    /// Physical rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The pieces of a shard.
    pub(crate) fn pieces(&self, shard: usize) -> &[ZBatch] {
        self.shards.get(shard).map_or(&[], Vec::as_slice)
    }

    /// See the field.
    pub(crate) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Takes rows that cancel out within a shard away, if there may be any.
    pub(crate) fn make_sound(&mut self, schema: &SchemaRef) -> Result<()> {
        if self.is_sound {
            return Ok(());
        }
        let consolidate = |pieces: &mut Vec<ZBatch>| -> Result<()> {
            if !pieces.is_empty() {
                *pieces = vec![ZBatch::concat(schema, pieces)?.consolidate()?];
            }
            Ok(())
        };
        if self.rows < PARALLEL_ROWS {
            self.shards.iter_mut().try_for_each(consolidate)?;
        } else {
            self.shards.par_iter_mut().try_for_each(consolidate)?;
        }
        self.rows = self.shards.iter().flatten().map(ZBatch::num_rows).sum();
        self.is_sound = true;
        Ok(())
    }

    /// Pieces per shard, spread as `exchange` asks, and consolidated if `consolidate` asks.
    pub(crate) fn exchanged(
        &mut self,
        schema: &SchemaRef,
        exchange: &Exchange,
        consolidate: bool,
        shards: usize,
    ) -> Result<Vec<Vec<ZBatch>>> {
        let key = match exchange {
            Exchange::Broadcast => {
                let pieces = match consolidate {
                    true => vec![self.whole(schema)?],
                    false => self.shards.iter().flatten().cloned().collect(),
                };
                return Ok(vec![pieces; shards]);
            }
            Exchange::Single => None,
            _ if shards == 1 => None,
            // A nonlinear operator without a key meets equal rows in one shard.
            Exchange::Any => Some((0..schema.fields().len()).collect()),
            Exchange::ByKey(key) => Some(key.clone()),
        };
        let Some(key) = key else {
            let mut spread = vec![Vec::new(); shards];
            spread[0] = if consolidate {
                vec![self.whole(schema)?]
            } else {
                self.shards.iter().flatten().cloned().collect()
            };
            return Ok(spread);
        };
        let fits = |s: &&Spread| s.key == key && (s.is_consolidated || !consolidate);
        if let Some(spread) = self.by_key.iter().find(fits) {
            return Ok(spread.shards.clone());
        }
        let is_consolidated = self.is_consolidated || consolidate;
        let spread = self.spread(schema, &key, consolidate, shards)?;
        self.by_key.push(Spread { key, is_consolidated, shards: spread.clone() });
        Ok(spread)
    }

    /// The whole delta as one batch.
    fn joined(&mut self, schema: &SchemaRef) -> Result<ZBatch> {
        let pieces: Vec<ZBatch> = self.shards.iter().flatten().cloned().collect();
        let whole = ZBatch::concat(schema, &pieces)?;
        if pieces.len() > 1 {
            self.shards.iter_mut().for_each(Vec::clear);
            self.shards[0].push(whole.clone());
        }
        Ok(whole)
    }

    /// The whole delta as one consolidated batch.
    pub(crate) fn whole(&mut self, schema: &SchemaRef) -> Result<ZBatch> {
        if !self.is_consolidated && self.rows >= PARALLEL_ROWS && self.shards.len() > 1 {
            let all: Vec<usize> = (0..schema.fields().len()).collect();
            let spread = self.spread(schema, &all, true, self.shards.len())?;
            self.shards = spread;
            self.is_consolidated = true;
        }
        let mut whole = self.joined(schema)?;
        if !self.is_consolidated {
            whole = whole.consolidate()?;
            self.shards.iter_mut().for_each(Vec::clear);
            self.shards[0].push(whole.clone());
        }
        self.rows = whole.num_rows();
        (self.is_consolidated, self.is_sound) = (true, true);
        Ok(whole)
    }

    /// Pieces per shard, rows that are equal in `key` in the same one; one piece each if consolidated.
    fn spread(
        &self,
        schema: &SchemaRef,
        key: &[usize],
        consolidate: bool,
        shards: usize,
    ) -> Result<Vec<Vec<ZBatch>>> {
        let cut = |pieces: &Vec<ZBatch>| -> Result<Vec<Vec<ZBatch>>> {
            pieces.iter().map(|piece| cut_by_key(piece, key, shards)).collect()
        };
        let join = |parts: Vec<ZBatch>| -> Result<Vec<ZBatch>> {
            if !consolidate || self.is_consolidated {
                return Ok(parts);
            }
            Ok(vec![ZBatch::concat(schema, &parts)?.consolidate()?])
        };
        let is_parallel = self.rows >= PARALLEL_ROWS;
        let cuts: Vec<Vec<Vec<ZBatch>>> = if is_parallel {
            self.shards.par_iter().map(cut).collect::<Result<_>>()?
        } else {
            self.shards.iter().map(cut).collect::<Result<_>>()?
        };
        let mut targets: Vec<Vec<ZBatch>> = vec![Vec::new(); shards];
        for parts in cuts.into_iter().flatten() {
            for (target, part) in targets.iter_mut().zip(parts) {
                if !part.is_empty() {
                    target.push(part);
                }
            }
        }
        if is_parallel {
            targets.into_par_iter().map(join).collect()
        } else {
            targets.into_iter().map(join).collect()
        }
    }
}

fn cut_by_key(piece: &ZBatch, key: &[usize], shards: usize) -> Result<Vec<ZBatch>> {
    let columns: Vec<_> = key.iter().map(|&k| piece.rows().column(k).clone()).collect();
    let hashes = hash_columns(&columns, piece.num_rows())?;
    let shard_of_row: Vec<u32> = hashes
        .iter()
        .map(|&hash| u32::try_from(shard_of(hash, shards)))
        .collect::<Result<_, _>>()
        .map_err(|_| Error::internal("SHARD_COUNT", "more than 2^32 shards"))?;
    piece.partition(&shard_of_row, shards)
}

/// All weights positive, or all negative: nothing can cancel out.
fn have_one_sign<'a>(batches: impl IntoIterator<Item = &'a ZBatch> + Clone) -> bool {
    let weights = || batches.clone().into_iter().flat_map(|batch| batch.weights().iter());
    weights().all(|&w| w > 0) || weights().all(|&w| w < 0)
}

/// The rows cut into one equal part per shard, or in shard 0 when they are few.
fn spread_evenly(batches: Vec<ZBatch>, rows: usize, shards: usize) -> Vec<Vec<ZBatch>> {
    let mut spread = vec![Vec::new(); shards];
    let length = if rows < PARALLEL_ROWS { rows } else { rows.div_ceil(shards) };
    let mut done = 0;
    for batch in batches {
        let mut from = 0;
        while from < batch.num_rows() {
            let shard = done / length;
            let taken = (batch.num_rows() - from).min((shard + 1) * length - done);
            spread[shard].push(batch.slice(from, taken));
            from += taken;
            done += taken;
        }
    }
    spread
}

/// The batch under `schema`, whose types it has. Fails when a NULL stands in a column that the
/// schema says has none.
pub(crate) fn relabelled(batch: ZBatch, schema: &SchemaRef) -> Result<ZBatch> {
    let own = batch.rows().schema_ref();
    if Arc::ptr_eq(own, schema) || own.fields() == schema.fields() {
        return Ok(batch);
    }
    let (rows, weights) = batch.into_parts();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let columns = rows.columns().to_vec();
    let rows = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
    ZBatch::try_new(rows, weights)
}
