//! Topological order of the datasets, and cycles.

use deltaic_batch::Error;

use super::definitions::Definitions;
use super::places::location;
use super::reads::{Read, Reads};

/// Datasets so that what one reads comes before it; those on a cycle, and those with a flow whose
/// reads are not known, are in it too.
#[derive(Debug)]
pub(super) struct Order {
    /// Indices of datasets.
    pub(super) datasets: Vec<usize>,
    /// Per dataset: it lies on a cycle.
    pub(super) cyclic: Vec<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

struct Search<'a> {
    definitions: &'a Definitions,
    reads: &'a Reads,
    marks: Vec<Mark>,
    path: Vec<usize>,
    order: Order,
    errors: &'a mut Vec<Error>,
}

/// Sorts the datasets; each cycle is one error.
pub(super) fn sort(definitions: &Definitions, reads: &Reads, errors: &mut Vec<Error>) -> Order {
    let count = definitions.datasets.len();
    let order = Order { datasets: Vec::with_capacity(count), cyclic: vec![false; count] };
    let (marks, path) = (vec![Mark::New; count], Vec::new());
    let mut search = Search { definitions, reads, marks, path, order, errors };
    for dataset in 0..count {
        search.visit(dataset);
    }
    search.order
}

impl Search<'_> {
    fn visit(&mut self, dataset: usize) {
        if self.marks[dataset] != Mark::New {
            return;
        }
        self.marks[dataset] = Mark::Open;
        self.path.push(dataset);
        let (definitions, reads) = (self.definitions, self.reads);
        if let Some(origin) = definitions.datasets[dataset].quarantine_of {
            self.visit(origin);
        }
        for &flow in &definitions.datasets[dataset].flows {
            for read in reads[flow].iter().flatten() {
                let Some(source) = read.dataset() else { continue };
                // A quarantine is written with the table whose rows it has.
                let origin = definitions.datasets[source].quarantine_of;
                if let Some(origin) = origin.filter(|origin| self.marks[*origin] == Mark::Open) {
                    self.cycle(origin, flow, read);
                    continue;
                }
                match self.marks[source] {
                    Mark::New => self.visit(source),
                    Mark::Open => self.cycle(source, flow, read),
                    Mark::Done => {}
                }
            }
        }
        self.path.pop();
        self.marks[dataset] = Mark::Done;
        self.order.datasets.push(dataset);
    }

    /// The open path from `source` to its end reads `source` again.
    fn cycle(&mut self, source: usize, flow: usize, read: &Read) {
        let from = self.path.iter().position(|d| *d == source).unwrap_or(0);
        let on = &self.path[from..];
        on.iter().for_each(|d| self.order.cyclic[*d] = true);
        let name = |d: usize| self.definitions.datasets[d].name.as_str();
        let (first, last) = (name(source), self.path.last().map_or("", |d| name(*d)));
        let message = if on.len() == 1 {
            format!("'{first}' reads itself")
        } else {
            let path: Vec<&str> = on.iter().map(|d| name(*d)).chain([first]).collect();
            format!(
                "'{last}' reads '{first}', which depends on '{last}'; each reads the next: {}",
                path.join(" → ")
            )
        };
        let flow = &self.definitions.flows[flow];
        self.errors.push(
            Error::user("PIPELINE_CIRCULAR_DEPENDENCY", message)
                .object(last)
                .at(location(&flow.file, read.span))
                .hint("take one of these reads out"),
        );
    }
}
