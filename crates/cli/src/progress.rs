//! Progress on a terminal: a line per running flow with its rows and rate.

use std::collections::HashMap;
use std::io::{IsTerminal as _, stderr};
use std::sync::Mutex;
use std::time::Duration;

use deltaic_pipeline::{FlowReport, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::complaint::say;

/// The lines of the running flows. Without a terminal, warnings only.
#[derive(Debug)]
pub(crate) struct Bars {
    terminal: bool,
    all: MultiProgress,
    running: Mutex<HashMap<(String, String), ProgressBar>>,
}

impl Default for Bars {
    fn default() -> Self {
        Self {
            terminal: stderr().is_terminal(),
            all: MultiProgress::new(),
            running: Mutex::default(),
        }
    }
}

impl Bars {
    /// Takes all lines away.
    pub(crate) fn clear(&self) {
        if self.terminal {
            // What cannot be cleared stays: no reason to fail.
            let _ = self.all.clear();
        }
    }

    fn with(&self, dataset: &str, flow: &str, act: impl FnOnce(&ProgressBar)) {
        let key = (dataset.to_owned(), flow.to_owned());
        if let Ok(running) = self.running.lock()
            && let Some(bar) = running.get(&key)
        {
            act(bar);
        }
    }
}

impl Progress for Bars {
    fn flow_started(&self, dataset: &str, flow: &str) {
        if !self.terminal {
            return;
        }
        let bar = self.all.add(ProgressBar::new_spinner());
        let style =
            ProgressStyle::with_template("{spinner} {msg}  {human_pos} rows  {per_sec}  {elapsed}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let name = if dataset == flow { dataset.into() } else { format!("{dataset} <- {flow}") };
        bar.set_message(name);
        bar.enable_steady_tick(Duration::from_millis(100));
        if let Ok(mut running) = self.running.lock() {
            running.insert((dataset.to_owned(), flow.to_owned()), bar);
        }
    }

    fn flow_rows(&self, dataset: &str, flow: &str, rows_in: u64) {
        self.with(dataset, flow, |bar| bar.set_position(rows_in));
    }

    fn flow_finished(&self, report: &FlowReport) {
        self.with(&report.dataset, &report.flow, ProgressBar::finish_and_clear);
    }

    fn warning(&self, message: &str) {
        let text = format!("warning: {message}");
        if !self.terminal || self.all.println(&text).is_err() {
            say(&text);
        }
    }
}
