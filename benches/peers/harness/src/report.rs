//! What a program has measured, as one line of JSON.

use std::fmt;
use std::time::Duration;

use crate::{Arguments, Check, Spent};

/// One run of the schedule.
#[derive(Debug)]
pub struct Report {
    peer: &'static str,
    workload: &'static str,
    workers: usize,
    strings: bool,
    pub(crate) load: Load,
    pub(crate) deltas: Vec<(String, Vec<Step>)>,
    pub(crate) single: Option<Epochs>,
    pub(crate) empty: Epochs,
    pub(crate) peak_mib: f64,
    pub(crate) state_bytes: Option<usize>,
    /// What the view has added up to; the program fills it in.
    pub check: Check,
}

/// The base rows, in one epoch.
#[derive(Debug, Default)]
pub(crate) struct Load {
    pub(crate) rows: usize,
    pub(crate) spent: Spent,
    pub(crate) resident_mib: f64,
}

/// One delta.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Rows of all inputs.
    pub rows: usize,
    /// Its time.
    pub spent: Spent,
}

/// Many small epochs.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    count: usize,
    spent: Spent,
    median: Duration,
    percentile_99: Duration,
}

impl Epochs {
    pub(crate) fn new(mut walls: Vec<Duration>, spent: Spent) -> Self {
        walls.sort_unstable();
        let at = |part: usize| walls.get(walls.len() * part / 100).copied().unwrap_or_default();
        Self { count: walls.len(), spent, median: at(50), percentile_99: at(99) }
    }
}

impl fmt::Display for Epochs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"{{"count":{},"wall_s":{:.6},"cpu_s":{:.6},"median_us":{:.3},"p99_us":{:.3}}}"#,
            self.count,
            self.spent.wall.as_secs_f64(),
            self.spent.cpu.as_secs_f64(),
            self.median.as_secs_f64() * 1e6,
            self.percentile_99.as_secs_f64() * 1e6,
        )
    }
}

impl Report {
    pub(crate) fn new(peer: &'static str, arguments: &Arguments) -> Self {
        Self {
            peer,
            workload: arguments.workload.name(),
            workers: arguments.workers,
            strings: arguments.strings,
            load: Load::default(),
            deltas: Vec::new(),
            single: None,
            empty: Epochs::default(),
            peak_mib: 0.0,
            state_bytes: None,
            check: Check::default(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, workload, workers, strings, load, .. } = self;
        let (wall, cpu) = (load.spent.wall.as_secs_f64(), load.spent.cpu.as_secs_f64());
        write!(f, r#"{{"peer":"{peer}","workload":"{workload}","workers":{workers},"#)?;
        write!(f, r#""strings":{strings},"load":{{"rows":{},"wall_s":{wall:.6},"#, load.rows)?;
        write!(f, r#""cpu_s":{cpu:.6},"resident_mib":{:.1}}},"deltas":{{"#, load.resident_mib)?;
        for (i, (label, steps)) in self.deltas.iter().enumerate() {
            write!(f, r#"{}"{label}":["#, if i == 0 { "" } else { "," })?;
            for (i, Step { rows, spent }) in steps.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                let (wall, cpu) = (spent.wall.as_secs_f64(), spent.cpu.as_secs_f64());
                write!(f, r#"{comma}{{"rows":{rows},"wall_s":{wall:.6},"cpu_s":{cpu:.6}}}"#)?;
            }
            write!(f, "]")?;
        }
        write!(f, "}},")?;
        if let Some(single) = &self.single {
            write!(f, r#""single":{single},"#)?;
        }
        write!(f, r#""empty":{},"peak_mib":{:.1},"#, self.empty, self.peak_mib)?;
        if let Some(bytes) = self.state_bytes {
            write!(f, r#""state_bytes":{bytes},"#)?;
        }
        let Check { rows, sum, drained } = self.check;
        write!(f, r#""check":{{"rows":{rows},"sum":{sum},"drained":{drained}}}}}"#)
    }
}
