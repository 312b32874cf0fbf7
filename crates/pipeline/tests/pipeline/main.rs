//! Whole pipelines in temporary folders.

#[cfg(test)]
mod change_feeds;
mod clock;
#[cfg(test)]
mod crashes;
mod flows;
#[cfg(test)]
mod project;
mod quarantine;
#[cfg(test)]
mod redefined;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod stored_state;
mod wrong_input;
