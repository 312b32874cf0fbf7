//! A state slot: what an operator keeps between steps and the driver owns.
//!
//! A slot is written as a full image, and from then on as the changes after it. Each piece is
//! framed as [`crate::frame`] says (what it is, version, length, checksum), and what it holds is
//! told in `docs/state-format.md`. Bytes that are damaged, or of another kind or version, are an
//! error with the code `STATE_CORRUPT`: the state is then rebuilt, never guessed.

use std::borrow::Cow;

use deltaic_batch::Result;

use crate::{Arrangement, ArrangementSpec, GroupSpec, GroupTable, Image, MultisetSpec, Multisets};

/// Declares a slot.
#[derive(Debug, Clone)]
pub enum SlotSpec {
    /// Accumulators by key.
    Groups(GroupSpec),
    /// A multiset of rows by key.
    Rows(ArrangementSpec),
    /// Ordered multisets by number of group.
    Multisets(MultisetSpec),
}

/// One shard's state of one slot.
#[derive(Debug)]
pub enum Slot {
    /// Accumulators by key.
    Groups(Box<GroupTable>),
    /// A multiset of rows by key.
    Rows(Box<Arrangement>),
    /// Ordered multisets by number of group.
    Multisets(Box<Multisets>),
}

impl Slot {
    /// Empty state.
    pub fn try_new(spec: &SlotSpec) -> Result<Self> {
        Ok(match spec {
            SlotSpec::Groups(spec) => Self::Groups(GroupTable::try_new(spec)?.into()),
            SlotSpec::Rows(spec) => Self::Rows(Arrangement::try_new(spec)?.into()),
            SlotSpec::Multisets(spec) => Self::Multisets(Multisets::try_new(spec)?.into()),
        })
    }

    /// The group table; an internal error when the slot is of another kind.
    pub fn groups(&mut self) -> Result<&mut GroupTable> {
        match self {
            Self::Groups(groups) => Ok(groups),
            _ => Err(wrong_kind()),
        }
    }

    /// The arrangement; an internal error when the slot is of another kind.
    pub fn rows(&mut self) -> Result<&mut Arrangement> {
        match self {
            Self::Rows(rows) => Ok(rows),
            _ => Err(wrong_kind()),
        }
    }

    /// The multisets; an internal error when the slot is of another kind.
    pub fn multisets(&mut self) -> Result<&mut Multisets> {
        match self {
            Self::Multisets(multisets) => Ok(multisets),
            _ => Err(wrong_kind()),
        }
    }

    /// True when nothing is held (law *undo*).
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Groups(groups) => groups.is_empty(),
            Self::Rows(rows) => rows.is_empty(),
            Self::Multisets(multisets) => multisets.is_empty(),
        }
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Groups(groups) => groups.memory_bytes(),
            Self::Rows(rows) => rows.memory_bytes(),
            Self::Multisets(multisets) => multisets.memory_bytes(),
        }
    }

    /// The whole state; later changes are relative to it.
    pub fn write_full(&mut self) -> Result<Image> {
        Ok(match self {
            Self::Groups(groups) => groups.write_full()?.into(),
            Self::Rows(rows) => rows.write_full()?,
            Self::Multisets(multisets) => multisets.write_full()?.into(),
        })
    }

    /// What changed since the last `write_full` or `write_changes`; an empty image when nothing did.
    pub fn write_changes(&mut self) -> Result<Image> {
        Ok(match self {
            Self::Groups(groups) => groups.write_changes()?.into(),
            Self::Rows(rows) => rows.write_changes()?,
            Self::Multisets(multisets) => multisets.write_changes()?.into(),
        })
    }

    /// State from a full image and the changes after it, in order. An arrangement reads its rows
    /// when they are first asked for, the others read all of theirs now.
    pub fn restore(spec: &SlotSpec, full: &Image, changes: &[Image]) -> Result<Self> {
        if let SlotSpec::Rows(spec) = spec {
            return Ok(Self::Rows(Arrangement::restore(spec, full, changes)?.into()));
        }
        let changes = changes.iter().map(Image::bytes).collect::<Result<Vec<_>>>()?;
        let changes: Vec<&[u8]> = changes.iter().map(Cow::as_ref).collect();
        let full = full.bytes()?;
        match spec {
            SlotSpec::Groups(spec) => {
                Ok(Self::Groups(GroupTable::restore(spec, &full, &changes)?.into()))
            }
            SlotSpec::Multisets(spec) => {
                Ok(Self::Multisets(Multisets::restore(spec, &full, &changes)?.into()))
            }
            SlotSpec::Rows(_) => Err(wrong_kind()),
        }
    }
}

/// Changes of one slot that came one after the other, as fewer images where these are cheaper to
/// open: those of an arrangement as one.
pub fn merge_changes(changes: Vec<Image>) -> Result<Vec<Image>> {
    let (few, first) = (changes.len() < 2, changes.first());
    match first {
        Some(first) if !few && Arrangement::is_image(first)? => {
            Ok(vec![Arrangement::merge_changes(&changes)?])
        }
        _ => Ok(changes),
    }
}

fn wrong_kind() -> deltaic_batch::Error {
    deltaic_batch::Error::internal("SLOT_KIND", "an operator asked for a slot of another kind")
}
