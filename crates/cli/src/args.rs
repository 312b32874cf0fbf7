//! Arguments and help texts.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

/// Arguments of the binary.
#[derive(Debug, Parser)]
#[command(
    name = "deltaic",
    version,
    about = "Pipelines of SQL tables and views that stay fresh at a cost in proportion to what changed",
    after_help = "Start with:\n  deltaic init shop && cd shop && deltaic run\n  deltaic query 'SELECT * FROM daily_revenue ORDER BY order_date, tier'\n\nExit codes: 0 done, 1 failed, 2 wrong usage or invalid project"
)]
pub(crate) struct Args {
    /// Folder of the project, or one below it
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) project: PathBuf,
    /// Clock of this run or query, such as 2026-01-31T10:00:00Z (UTC unless it has an offset)
    #[arg(long, global = true, value_name = "TIMESTAMP", value_parser = timestamp)]
    pub(crate) now: Option<i64>,
    /// Threads to use; all cores by default
    #[arg(long, global = true, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a project that runs, with sample data
    #[command(
        after_help = "The project is a small shop: change events of orders and customers are landed as\nJSON files, become tables with history, and end in a view of daily revenue.\n\nExample:\n  deltaic init shop && cd shop && deltaic run"
    )]
    Init {
        /// Folder to create; it must be empty or not exist
        dir: PathBuf,
    },
    /// Bring all tables and views up to date
    #[command(
        after_help = "A run without new input does nothing. A flow that fails leaves its table as it was;\nwhat does not depend on it goes on.\n\nExamples:\n  deltaic run\n  deltaic run --refresh orders,daily_revenue\n  deltaic run --full-refresh orders        forget what was read, read everything again\n  deltaic run --format json | jq .flows"
    )]
    Run(RunArgs),
    /// Check the whole project without touching data
    #[command(
        after_help = "Lists datasets in the order in which they are refreshed, with what each reads, and SQL\nfiles that the project does not cover. All errors that can be found are told at once.\n\nExample:\n  deltaic dry-run --project shop"
    )]
    DryRun {
        /// Form of the list
        #[arg(long, value_enum, default_value_t)]
        format: ReportFormat,
    },
    /// Show how views are refreshed, and why
    #[command(after_help = "Examples:\n  deltaic explain daily_revenue\n  deltaic explain")]
    Explain {
        /// Names of views; all by default
        #[arg(value_name = "VIEW")]
        views: Vec<String>,
    },
    /// Run a query over the tables and views as the last run left them
    #[command(
        after_help = "Examples:\n  deltaic query 'SELECT tier, sum(revenue) FROM daily_revenue GROUP BY tier'\n  deltaic query 'SHOW TABLES'\n  deltaic query 'DESCRIBE orders'\n  deltaic query \"SELECT * FROM table_changes('orders', 2)\"\n  deltaic query 'SELECT * FROM event_log()' --format csv > events.csv"
    )]
    Query {
        /// SELECT …, DESCRIBE table, SHOW TABLES
        sql: String,
        /// Form of the rows; json is one array of objects
        #[arg(long, value_enum, default_value_t)]
        format: RowFormat,
    },
    /// Draw what reads what
    #[command(
        after_help = "Examples:\n  deltaic graph\n  deltaic graph --format mermaid > graph.mmd\n  deltaic graph --format dot | dot -Tsvg > graph.svg"
    )]
    Graph {
        /// Form of the drawing
        #[arg(long, value_enum, default_value_t)]
        format: GraphFormat,
    },
    /// List the versions of a table or view, newest first
    #[command(
        after_help = "The changes of a version are rows of table_changes:\n  deltaic history orders\n  deltaic query \"SELECT * FROM table_changes('orders', 3, 3)\""
    )]
    History {
        /// Name of a table or view
        dataset: String,
        /// Form of the rows
        #[arg(long, value_enum, default_value_t)]
        format: RowFormat,
    },
    /// Show what runs did: rows, techniques, time, expectations
    #[command(
        after_help = "Examples:\n  deltaic events\n  deltaic events --update 3 --format json"
    )]
    Events {
        /// Number of one update; all when left out
        #[arg(long, value_name = "N")]
        update: Option<u64>,
        /// Form of the rows
        #[arg(long, value_enum, default_value_t)]
        format: RowFormat,
    },
}

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Refresh these and nothing else
    #[arg(long, value_name = "NAMES", value_delimiter = ',', action = ArgAction::Append)]
    pub(crate) refresh: Vec<String>,
    /// Reset these, then refresh them; may be given together with --refresh
    #[arg(long, value_name = "NAMES", value_delimiter = ',', action = ArgAction::Append)]
    pub(crate) full_refresh: Vec<String>,
    /// Reset and refresh everything
    #[arg(long, conflicts_with_all = ["refresh", "full_refresh"])]
    pub(crate) full_refresh_all: bool,
    /// Remove tables of datasets that are no longer defined
    #[arg(long)]
    pub(crate) drop_inactive: bool,
    /// Form of the report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Lines to read.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Form of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum RowFormat {
    /// Aligned, to read.
    #[default]
    Table,
    /// With a header line.
    Csv,
    /// One array of objects.
    Json,
}

/// Form of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum GraphFormat {
    /// One line per dataset.
    #[default]
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("a number above 0".into()),
    }
}

/// Microseconds since 1970 of a date and time, in UTC unless it has an offset.
fn timestamp(text: &str) -> Result<i64, String> {
    use chrono::{DateTime, NaiveDate, NaiveDateTime};
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.timestamp_micros());
    }
    let text = text.replace('T', " ");
    if let Ok(at) = NaiveDateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f") {
        return Ok(at.and_utc().timestamp_micros());
    }
    if let Ok(Some(at)) =
        NaiveDate::parse_from_str(&text, "%Y-%m-%d").map(|d| d.and_hms_opt(0, 0, 0))
    {
        return Ok(at.and_utc().timestamp_micros());
    }
    Err("write it like 2026-01-31T10:00:00Z".into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn timestamps_with_and_without_offset() {
        let second = 1_000_000;
        assert_eq!(timestamp("1970-01-01T00:00:01Z"), Ok(second));
        assert_eq!(timestamp("1970-01-01 00:00:01"), Ok(second));
        assert_eq!(timestamp("1970-01-01T01:00:01+01:00"), Ok(second));
        assert_eq!(timestamp("1970-01-01T00:00:00.5"), Ok(second / 2));
        assert_eq!(timestamp("1970-01-02"), Ok(86_400 * second));
        assert!(timestamp("tomorrow").is_err());
    }

    #[test]
    fn lists_are_split_and_added_up() {
        let args = Args::parse_from(["deltaic", "run", "--refresh", "a,b", "--refresh", "c"]);
        let Command::Run(run) = args.command else { panic!() };
        assert_eq!(run.refresh, ["a", "b", "c"]);
        let both = ["deltaic", "run", "--full-refresh-all", "--refresh", "a"];
        assert!(Args::try_parse_from(both).is_err());
    }
}
