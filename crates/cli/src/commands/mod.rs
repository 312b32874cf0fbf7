//! What each command does.

mod dry_run;
mod events;
mod graph;
mod history;
mod init;
mod query;
mod run;

use deltaic_pipeline::{Pipeline, PipelineOptions};

use crate::args::{Args, Command};
use crate::complaint::{Complaint, Sources};
use crate::output::Out;

/// Runs the command; the exit code.
pub(crate) fn execute(args: &Args, out: &mut Out) -> Result<u8, Complaint> {
    if let Command::Init { dir } = &args.command {
        init::init(dir, out)?;
        return Ok(0);
    }
    let options = PipelineOptions { now_us: args.now, threads: args.threads };
    let pipeline = Pipeline::open(&args.project, options)
        .map_err(|e| Complaint::new(e, &Sources::near(&args.project)))?;
    let sources = Sources::of(pipeline.project());
    match &args.command {
        Command::Init { .. } => {}
        Command::Run(run) => return run::run(&pipeline, run, &sources, out),
        Command::DryRun { format } => return dry_run::dry_run(&pipeline, *format, &sources, out),
        Command::Explain { views } => {
            let texts = pipeline.explain(views).map_err(|e| Complaint::new(e, &sources))?;
            for (at, (name, text)) in texts.iter().enumerate() {
                if texts.len() > 1 {
                    out.line(&format!("{}-- {name}", if at > 0 { "\n" } else { "" }))?;
                }
                out.line(text.trim_end())?;
            }
        }
        Command::Query { sql, format } => query::query(&pipeline, sql, *format, &sources, out)?,
        Command::Graph { format } => {
            let graph = pipeline.graph().map_err(|e| Complaint::new(e, &sources))?;
            out.line(graph::draw(graph, *format).trim_end())?;
        }
        Command::History { dataset, format } => {
            history::history(&pipeline, dataset, *format, &sources, out)?;
        }
        Command::Events { update, format } => {
            events::events(&pipeline, *update, *format, &sources, out)?;
        }
    }
    Ok(0)
}
