//! Writing the circuit's state and putting it back.

use std::collections::BTreeMap;

use deltaic_batch::{Error, Result};
use deltaic_state::{Image, Slot, SlotSpec};
use rayon::prelude::*;

use crate::Circuit;

/// The image of one slot of one shard.
#[derive(Debug, Clone)]
pub struct SlotImage {
    /// Node number.
    pub node: usize,
    /// Slot number in the operator's spec.
    pub slot: usize,
    /// Shard.
    pub shard: usize,
    /// Bytes as [`deltaic_state::Slot`] writes them.
    pub image: Image,
}

/// All slots of a circuit at one epoch.
#[derive(Debug, Clone)]
pub struct SlotImages {
    /// Number of epochs done.
    pub epoch: u64,
    /// Number of shards.
    pub shards: usize,
    /// Full images or changes.
    pub images: Vec<SlotImage>,
}

/// Node, shard, slot.
type Place = (usize, usize, usize);

impl Circuit {
    /// Full images of all slots.
    pub fn write_full(&mut self) -> Result<SlotImages> {
        self.write(Slot::write_full, |_| true)
    }

    /// Changes of all slots since the last write; slots without change are left out.
    pub fn write_changes(&mut self) -> Result<SlotImages> {
        self.write(Slot::write_changes, |image| !image.is_empty())
    }

    fn write(
        &mut self,
        write: impl Fn(&mut Slot) -> Result<Image> + Sync,
        is_kept: impl Fn(&Image) -> bool,
    ) -> Result<SlotImages> {
        self.check_usable()?;
        let slots: Vec<(Place, &mut Slot)> = (self.state.iter_mut().enumerate())
            .flat_map(|(node, shards)| {
                shards.iter_mut().enumerate().flat_map(move |(shard, slots)| {
                    let place = move |slot| (node, shard, slot);
                    slots.iter_mut().enumerate().map(move |(slot, s)| (place(slot), s))
                })
            })
            .collect();
        let images = slots
            .into_par_iter()
            .map(|((node, shard, slot), state)| {
                Ok(SlotImage { node, slot, shard, image: write(state)? })
            })
            .collect::<Result<Vec<_>>>()?;
        let images = images.into_iter().filter(|image| is_kept(&image.image)).collect();
        Ok(SlotImages { epoch: self.epoch, shards: self.options.shards, images })
    }

    /// Puts stored state into a freshly built circuit: full images and later changes in order.
    /// The number of shards must be the same.
    ///
    /// Fails with `STATE_MISMATCH` when the images are not those of this circuit; the circuit is
    /// then as it was before.
    pub fn restore(&mut self, full: &SlotImages, changes: &[SlotImages]) -> Result<()> {
        let mut epoch = full.epoch;
        self.check_shards(full)?;
        for change in changes {
            self.check_shards(change)?;
            if change.epoch < epoch {
                return Err(mismatch(format!(
                    "the changes of epoch {} come after those of epoch {epoch}",
                    change.epoch
                )));
            }
            epoch = change.epoch;
        }
        let specs = self.places();
        let mut stored: BTreeMap<Place, (&Image, Vec<Image>)> = BTreeMap::new();
        for image in &full.images {
            let place = known(&specs, image)?;
            if stored.insert(place, (&image.image, Vec::new())).is_some() {
                return Err(mismatch(format!("{} is stored twice", describe(place))));
            }
        }
        for image in changes.iter().flat_map(|change| &change.images) {
            let place = known(&specs, image)?;
            if let Some((_, changes)) = stored.get_mut(&place) {
                changes.push(image.image.clone());
            }
        }
        if let Some((place, _)) = specs.iter().find(|(place, _)| !stored.contains_key(place)) {
            return Err(mismatch(format!("{} is not stored", describe(*place))));
        }
        let slots = stored
            .into_par_iter()
            .map(|(place, (full, changes))| Slot::restore(specs[&place], full, &changes))
            .collect::<Result<Vec<Slot>>>()?;
        let state = self.arranged(slots);
        self.reset(state, epoch);
        Ok(())
    }

    /// All slots of the circuit, in order.
    fn places(&self) -> BTreeMap<Place, &SlotSpec> {
        let mut places = BTreeMap::new();
        for (node, n) in self.nodes.iter().enumerate() {
            for shard in 0..self.options.shards {
                for (slot, spec) in n.slots().iter().enumerate() {
                    places.insert((node, shard, slot), spec);
                }
            }
        }
        places
    }

    /// Slots in the order of [`Circuit::places`], by node and shard.
    fn arranged(&self, slots: Vec<Slot>) -> Vec<Vec<Vec<Slot>>> {
        let mut slots = slots.into_iter();
        (self.nodes.iter())
            .map(|node| {
                let count = node.slots().len();
                (0..self.options.shards).map(|_| slots.by_ref().take(count).collect()).collect()
            })
            .collect()
    }

    fn check_shards(&self, images: &SlotImages) -> Result<()> {
        if images.shards == self.options.shards {
            return Ok(());
        }
        Err(mismatch(format!(
            "the state was stored in {} shards, the circuit has {}",
            images.shards, self.options.shards
        )))
    }
}

fn known(specs: &BTreeMap<Place, &SlotSpec>, image: &SlotImage) -> Result<Place> {
    let place = (image.node, image.shard, image.slot);
    if specs.contains_key(&place) {
        return Ok(place);
    }
    Err(mismatch(format!("the circuit has no {}", describe(place))))
}

fn describe((node, shard, slot): Place) -> String {
    format!("slot {slot} of node {node} in shard {shard}")
}

fn mismatch(message: String) -> Error {
    Error::storage("STATE_MISMATCH", message)
        .hint("the stored state belongs to another plan; rebuild it from the tables")
}
