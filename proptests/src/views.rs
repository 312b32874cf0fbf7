//! Laws of SQL views that are drawn at random, through the planner.

use deltaic_plan::{Session, SessionOptions};
use deltaic_testkit::{
    Law, Root, Subject, Tape, check_laws, draw_epochs, draw_query, integrate, run_in_datafusion,
    sources,
};

use crate::operators::{describe, drawn};
use crate::runner::check;
use crate::{LawTest, Settings};

pub(crate) fn laws() -> Vec<LawTest> {
    vec![
        LawTest { name: "views of one operator", run: |settings| view(settings, 1) },
        LawTest { name: "views", run: |settings| view(settings, 3) },
        LawTest { name: "oracles agree", run: oracles },
    ]
}

fn session() -> Result<Session, String> {
    let options = SessionOptions { time_zone: "UTC".to_owned(), now_us: Some(0) };
    Session::try_new(options).map_err(|e| e.to_string())
}

/// All laws of a view.
fn view(settings: Settings, depth: usize) -> Result<(), String> {
    let session = session()?;
    let query = |bytes: &[u8]| draw_query(&mut Tape::new(bytes), Root::Any, depth, true);
    check(
        settings,
        &drawn(),
        |(plan, data, _)| describe(&query(plan), &draw_epochs(data).unwrap_or_default()),
        |(plan, data, seed)| {
            let query = query(plan);
            let view = session.plan_view(&query.sql(), &sources()).map_err(|e| e.to_string())?;
            let mut epochs = draw_epochs(data)?;
            let read = view.sources();
            epochs.iter_mut().for_each(|epoch| epoch.retain(|(name, _)| read.contains(name)));
            let subject = Subject {
                make: &|options| view.circuit(options),
                output: "view",
                oracle: &|epochs| Ok(query.eval(&integrate(epochs)?)),
            };
            check_laws(&subject, &Law::ALL, &epochs, *seed)
        },
    )
}

/// The naive definition and DataFusion's batch run give the same table, so that neither hides an
/// error of the other.
fn oracles(settings: Settings) -> Result<(), String> {
    let session = session()?;
    let query = |bytes: &[u8]| draw_query(&mut Tape::new(bytes), Root::Any, 3, true);
    check(
        settings,
        &drawn(),
        |(plan, data, _)| describe(&query(plan), &draw_epochs(data).unwrap_or_default()),
        |(plan, data, _)| {
            let query = query(plan);
            let tables = integrate(&draw_epochs(data)?)?;
            let naive = query.eval(&tables);
            let batch = run_in_datafusion(&session, &query.sql(), &tables)?;
            if naive == batch {
                return Ok(());
            }
            Err(format!("by definition {naive:?}\nDataFusion {batch:?}"))
        },
    )
}
