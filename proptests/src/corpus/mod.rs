//! Runs files of the sqllogictest format: every query as a view, over tables whose rows come in pieces
//! with churn, and over tables that are all there; beside a batch run of the same query, and beside
//! the answer that the file expects.
//!
//! The format is SQLite's: records of a statement, or of a query with its answer, separated by empty
//! lines; `skipif` and `onlyif` name engines, of which we are `postgresql`. DataFusion's files end in
//! `.slt`: there answers are lines ([`lines`]), statements make tables of any type, and other
//! records than queries of rows are left out.

mod answer;
mod lines;
mod records;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use deltaic_batch::ZBatch;
use deltaic_exec::CircuitOptions;
use deltaic_plan::{Session, SessionOptions, Technique};

use answer::Answer;
use records::{Query, Record};
use tables::Tables;

/// Differences of one kind that are shown.
const SHOWN_MAX: usize = 3;
/// The time of all runs.
const NOW_US: i64 = 0;

/// What became of the queries of some files.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Views that equal the batch run and the expected answer.
    pub passed: u64,
    /// Queries that are refused or fail, in batch as in a view, by code; and the first of each.
    pub refused: BTreeMap<String, (u64, String)>,
    /// Queries whose answer is ours, though not the file's, since `/` divides integers there.
    pub divisions: u64,
    /// Other queries whose answer in batch is not the file's.
    pub unexpected: Vec<String>,
    /// Views that are not equal to the batch run.
    pub wrong: Vec<String>,
    /// Statements and records that are not understood.
    pub statements: BTreeMap<String, u64>,
    /// Queries whose value is another one in every run.
    pub volatile: u64,
}

impl Outcome {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.divisions += other.divisions;
        self.volatile += other.volatile;
        self.unexpected.extend(other.unexpected);
        self.wrong.extend(other.wrong);
        for (name, count) in other.statements {
            *self.statements.entry(name).or_default() += count;
        }
        for (code, (count, first)) in other.refused {
            self.refused.entry(code).or_insert((0, first)).0 += count;
        }
    }

    /// No wrong view and no unexpected answer.
    pub fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.unexpected.is_empty()
    }

    /// One line, and the first differences.
    pub fn report(&self, name: &str) -> String {
        let refused: u64 = self.refused.values().map(|(count, _)| count).sum();
        let mut text = format!(
            "{name}: {} views pass, {} wrong, {} unexpected answers, {} divide integers, {} volatile, \
             {refused} refused",
            self.passed,
            self.wrong.len(),
            self.unexpected.len(),
            self.divisions,
            self.volatile,
        );
        for (code, (count, first)) in &self.refused {
            let _ = write!(text, "\n  refused {code} {count}: {first}");
        }
        for (statement, count) in &self.statements {
            let _ = write!(text, "\n  statement left out {statement} {count}");
        }
        for shown in self.wrong.iter().take(SHOWN_MAX).chain(self.unexpected.iter().take(SHOWN_MAX))
        {
            let _ = write!(text, "\n  {shown}");
        }
        text
    }
}

/// Which queries of a file to run, and how their rows come.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// One of so many.
    pub every: u64,
    /// Which of them, and how tables are cut into pieces.
    pub seed: u64,
}

/// Runs a file, compressed or not.
pub fn run_file(path: &Path, sample: Sample) -> Result<Outcome, String> {
    let text = records::read(path)?;
    let options = SessionOptions { time_zone: "UTC".to_owned(), now_us: Some(NOW_US) };
    let session = Session::try_new(options).map_err(|e| e.to_string())?;
    let is_lines = path.to_string_lossy().trim_end_matches(".gz").ends_with(".slt");
    let tables = Tables::new(sample.seed, is_lines);
    let mut run = Run { session, tables, outcome: Outcome::default() };
    let mut number = sample.seed;
    for record in records::parse(&text) {
        match record {
            Record::Statement(sql) => run.statement(&sql),
            Record::Query(query) => {
                number = number.wrapping_add(1);
                if number.is_multiple_of(sample.every.max(1)) {
                    if is_lines { run.query_of_lines(&query) } else { run.query(&query) }
                }
            }
        }
    }
    Ok(run.outcome)
}

struct Run {
    session: Session,
    tables: Tables,
    outcome: Outcome,
}

impl Run {
    fn statement(&mut self, sql: &str) {
        if let Err(why) = self.tables.execute(&self.session, sql) {
            *self.outcome.statements.entry(why).or_default() += 1;
        }
    }

    fn query(&mut self, query: &Query) {
        let (session, sources) = (&self.session, self.tables.sources());
        let batch = session.run_batch(&query.sql, sources, self.tables.batches());
        let batch = match batch {
            Ok((_, batches)) => batches,
            // A view's columns have names of their own.
            Err(error) if error.code() == "COLUMN_ALREADY_EXISTS" && !query.is_renamed() => {
                return self.query(&query.renamed());
            }
            Err(error) => return self.refuse(&error, query),
        };
        let expected = match Answer::of(&batch) {
            Ok(answer) => answer,
            Err(why) => return self.outcome.wrong.push(format!("{}: {why}", query.sql)),
        };
        for in_pieces in [true, false] {
            match self.view(&query.sql, in_pieces).and_then(|bag| Answer::of_bag(&bag)) {
                Ok(answer) if answer.is_same_bag(&expected) => {}
                Ok(answer) => {
                    let (got, want) = (answer.shown(), expected.shown());
                    let what = format!("{}\n    view {got}\n    batch {want}", query.sql);
                    return self.outcome.wrong.push(what);
                }
                Err(why) => return self.outcome.wrong.push(format!("{}\n    {why}", query.sql)),
            }
        }
        if query.is_answered_by(&expected) {
            self.outcome.passed += 1;
        } else if query.sql.contains('/') {
            self.outcome.divisions += 1;
        } else {
            let what = format!("{}\n    ours {}", query.sql, expected.shown());
            self.outcome.unexpected.push(format!("{what}\n    file {}", query.expected()));
        }
    }

    /// A query whose answer is lines.
    fn query_of_lines(&mut self, query: &Query) {
        let (session, sources) = (&self.session, self.tables.sources());
        if !query.is_of_rows() {
            return self.leave_out("records that are no query of rows");
        }
        let batch = session.run_batch(&query.sql, sources, self.tables.batches());
        let view = session.plan_view(&query.sql, sources);
        let batch = match (batch, view) {
            (Ok((_, batches)), Ok(view)) => {
                if view.technique() == Technique::CompleteRecompute {
                    self.outcome.volatile += 1;
                    return;
                }
                batches
            }
            (Err(error), _) | (_, Err(error)) if error.code() == "COLUMN_ALREADY_EXISTS" => {
                if query.is_renamed() {
                    return self.refuse(&error, query);
                }
                return self.query_of_lines(&query.renamed());
            }
            (Err(error), _) if error.code() == "TABLE_OR_VIEW_NOT_FOUND" => {
                return self.leave_out("queries of tables that are not there");
            }
            (Err(error), _) | (_, Err(error)) => return self.refuse(&error, query),
        };
        let expected = match lines::of(&batch) {
            Ok(lines) => lines,
            Err(why) => return self.outcome.wrong.push(format!("{}: {why}", query.sql)),
        };
        let shown = |lines: &[String]| {
            format!(
                "{} rows: {}",
                lines.len(),
                lines.iter().take(4).cloned().collect::<Vec<_>>().join(" | ")
            )
        };
        for in_pieces in [true, false] {
            let rows = self.view(&query.sql, in_pieces).and_then(|bag| lines::of_bag(&bag));
            match rows {
                Ok(lines) if lines == expected => {}
                Ok(lines) => {
                    let (got, want) = (shown(&lines), shown(&expected));
                    let what = format!("{}\n    view {got}\n    batch {want}", query.sql);
                    return self.outcome.wrong.push(what);
                }
                Err(why) => return self.outcome.wrong.push(format!("{}\n    {why}", query.sql)),
            }
        }
        if lines::are_same(&expected, query.lines()) {
            self.outcome.passed += 1;
        } else {
            let (ours, file) = (shown(&expected), shown(query.lines()));
            let what = format!("{}\n    ours {ours}\n    file {file}", query.sql);
            self.outcome.unexpected.push(what);
        }
    }

    fn leave_out(&mut self, what: &str) {
        *self.outcome.statements.entry(what.to_owned()).or_default() += 1;
    }

    fn refuse(&mut self, error: &deltaic_batch::Error, query: &Query) {
        let first = (0, format!("{error}\n    {}", query.sql));
        self.outcome.refused.entry(error.code().to_owned()).or_insert(first).0 += 1;
    }

    /// The rows of a view that sees the tables' rows come, in pieces or at once.
    fn view(&self, sql: &str, in_pieces: bool) -> Result<ZBatch, String> {
        let say = |e: deltaic_batch::Error| e.to_string();
        let view = self.session.plan_view(sql, self.tables.sources()).map_err(say)?;
        let mut circuit = view.circuit(CircuitOptions { shards: 1, checks: false }).map_err(say)?;
        let mut deltas: Vec<ZBatch> = Vec::new();
        let mut clock = view.clock_change(None, NOW_US).map_err(say)?;
        for mut epoch in self.tables.epochs(&view.sources(), in_pieces) {
            epoch.extend(clock.take());
            let mut out = circuit.step(epoch).map_err(say)?;
            deltas.extend(out.remove("view"));
        }
        let rows = ZBatch::concat(&view.schema(), &deltas).and_then(|all| all.consolidate());
        rows.map_err(say)
    }
}
