//! Rules of datasets and flows: how many flows of which kind, streaming or not, resets.

use deltaic_batch::Error;
use deltaic_plan::{Session, Technique};
use deltaic_sql::{CdcSource, DatasetKind, FlowBody, OnViolation, Query, RefreshPolicy, Span};

use super::bind::{Bound, append_only};
use super::definitions::{DatasetDef, Definitions, FlowDef};
use super::places::location;
use super::reads::{Read, Reads, Target};

struct Check<'a> {
    definitions: &'a Definitions,
    reads: &'a Reads,
    bound: &'a Bound,
    session: &'a Session,
    errors: &'a mut Vec<Error>,
}

/// Checks all datasets and flows.
pub(super) fn check(
    definitions: &Definitions,
    reads: &Reads,
    bound: &Bound,
    session: &Session,
    errors: &mut Vec<Error>,
) {
    let mut check = Check { definitions, reads, bound, session, errors };
    for dataset in &definitions.datasets {
        check.flows_of(dataset);
    }
    for (n, flow) in definitions.flows.iter().enumerate() {
        if let Some(reads) = &check.reads[n] {
            check.flow(flow, reads);
        }
    }
}

impl Check<'_> {
    fn fail(&mut self, code: &'static str, flow: &FlowDef, span: Span, message: &str, hint: &str) {
        let object = &self.definitions.datasets[flow.target].name;
        let error = Error::user(code, message).object(object).at(location(&flow.file, span));
        self.errors.push(if hint.is_empty() { error } else { error.hint(hint) });
    }

    /// Number and kinds of the flows of a dataset.
    fn flows_of(&mut self, dataset: &DatasetDef) {
        let definitions = self.definitions;
        let explicit = dataset.flows.iter().map(|f| &definitions.flows[*f]).find(|f| !f.implicit);
        match dataset.ast.kind {
            DatasetKind::StreamingTable => self.table(dataset),
            DatasetKind::MaterializedView => {
                self.no_quarantine(dataset);
                if let Some(flow) = explicit {
                    let message = "a materialized view has exactly one query, its own";
                    let hint = "write into a STREAMING TABLE";
                    let code = "MATERIALIZED_VIEW_WITH_MULTIPLE_QUERIES";
                    self.fail(code, flow, flow.span, message, hint);
                } else if dataset.ast.refresh_policy == RefreshPolicy::IncrementalStrict {
                    self.incremental(dataset);
                }
            }
            DatasetKind::TemporaryView | DatasetKind::View => {
                if let Some(flow) = explicit {
                    let (message, hint) = ("a view has no flows", "write into a STREAMING TABLE");
                    self.fail("INVALID_FLOW_TARGET", flow, flow.span, message, hint);
                }
                if let Some(e) = dataset.ast.expectations.first() {
                    let message = "expectations of a view are not supported yet";
                    let error = Error::user("UNSUPPORTED_FEATURE", message).object(&dataset.name);
                    let at = location(&dataset.file, e.name.span);
                    self.errors
                        .push(error.at(at).hint("put them on the table that reads the view"));
                }
            }
        }
    }

    /// The rows of a view come and go: those that violate a rule are a view themselves.
    fn no_quarantine(&mut self, dataset: &DatasetDef) {
        let rules = dataset.ast.expectations.iter();
        for rule in rules.filter(|rule| rule.action == OnViolation::Quarantine) {
            let message = "a materialized view has no quarantine";
            let hint = format!(
                "use DROP ROW, and CREATE MATERIALIZED VIEW {}__violating AS SELECT … WHERE NOT \
                 coalesce({}, false)",
                dataset.name, rule.condition.value
            );
            let error = Error::user("UNSUPPORTED_FEATURE", message).object(&dataset.name);
            self.errors.push(error.at(location(&dataset.file, rule.name.span)).hint(hint));
        }
    }

    /// A view that must be refreshed incrementally can be.
    fn incremental(&mut self, dataset: &DatasetDef) {
        let Some(&flow) = dataset.flows.first() else { return };
        let Some(bound) = &self.bound.flows[flow] else { return };
        let text = &self.definitions.flows[flow].query().text;
        let sources = bound.sources(self.definitions);
        let planned = self.session.plan_view(text, &sources);
        if let Err(error) = planned.and_then(|plan| plan.incremental_throughout()) {
            let at = location(&dataset.file, dataset.ast.name.span);
            self.errors.push(error.object(&dataset.name).at(at));
        }
    }

    fn table(&mut self, dataset: &DatasetDef) {
        if dataset.quarantine_of.is_some() {
            return;
        }
        if dataset.flows.is_empty() && self.errors.iter().any(|e| e.code() == super::PARSE) {
            // Its flow may be one that could not be read.
            return;
        }
        if dataset.flows.is_empty() {
            let message = "no flow writes into this table";
            let error = Error::user("PIPELINE_DATASET_WITHOUT_FLOW", message).object(&dataset.name);
            let hint = "add AS SELECT … FROM STREAM …, or CREATE FLOW … AS INSERT INTO it";
            let at = location(&dataset.file, dataset.ast.name.span);
            self.errors.push(error.at(at).hint(hint));
            return;
        }
        let definitions = self.definitions;
        let is_cdc = |f: &usize| matches!(definitions.flows[*f].body, FlowBody::Cdc(_));
        let Some(&first) = dataset.flows.iter().find(|f| is_cdc(f)) else {
            return;
        };
        for &other in dataset.flows.iter().filter(|f| **f != first) {
            if !self.agree(first, other) {
                let flow = &definitions.flows[other];
                let message = "flows into an AUTO CDC target must all be AUTO CDC, with the same \
                               keys, columns and SCD type";
                let hint = format!("compare with flow '{}'", definitions.flows[first].name);
                let code = "AUTOCDC_MULTIPLE_FLOWS_TO_TARGET";
                self.fail(code, flow, flow.span, message, &hint);
            }
        }
    }

    /// Two flows into one AUTO CDC target fit together (or one is in error already).
    fn agree(&self, a: usize, b: usize) -> bool {
        let (FlowBody::Cdc(spec_a), FlowBody::Cdc(spec_b)) =
            (&self.definitions.flows[a].body, &self.definitions.flows[b].body)
        else {
            return false;
        };
        let events = |s: &CdcSource| matches!(s, CdcSource::Events(_));
        if events(&spec_a.source) != events(&spec_b.source) || !events(&spec_a.source) {
            return false;
        }
        let (Some(a), Some(b)) = (&self.bound.flows[a], &self.bound.flows[b]) else {
            return true;
        };
        let (Some(plan_a), Some(plan_b)) = (&a.cdc, &b.cdc) else {
            return true;
        };
        let names = |columns: &[usize], bound: &super::bind::BoundFlow| -> Vec<String> {
            columns.iter().map(|c| bound.schema.field(*c).name().to_lowercase()).collect()
        };
        let types = |columns: &[usize], bound: &super::bind::BoundFlow| -> Vec<_> {
            columns.iter().map(|c| bound.schema.field(*c).data_type().clone()).collect()
        };
        let sequence =
            |p: &super::CdcPlan| p.sequence.as_ref().map(|s| s.field.data_type().clone());
        plan_a.scd_type == plan_b.scd_type
            && names(&plan_a.keys, a) == names(&plan_b.keys, b)
            && names(&plan_a.columns, a) == names(&plan_b.columns, b)
            && types(&plan_a.columns, a) == types(&plan_b.columns, b)
            && names(&plan_a.tracked, a) == names(&plan_b.tracked, b)
            && sequence(plan_a) == sequence(plan_b)
    }

    fn flow(&mut self, flow: &FlowDef, reads: &[Read]) {
        for read in reads {
            self.read(flow, read);
        }
        let query = flow.query();
        let stream = reads.iter().find(|r| r.streaming);
        let kind = self.definitions.datasets[flow.target].ast.kind;
        match (kind, &flow.body) {
            (DatasetKind::StreamingTable, FlowBody::Query(_)) => {
                self.append(flow, reads, stream);
            }
            (DatasetKind::StreamingTable, FlowBody::Cdc(spec)) => {
                if matches!(spec.source, CdcSource::Events(_)) {
                    self.needs_stream(flow, stream, "AUTO CDC");
                    self.bounded(flow, query, reads);
                }
            }
            (DatasetKind::MaterializedView, _) if flow.implicit => {
                let code = "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW";
                let hint = "leave STREAM out: a materialized view always equals its query over all \
                            rows; or make it a STREAMING TABLE";
                self.no_stream(code, flow, stream, "a materialized view", hint);
            }
            (DatasetKind::View, _) => {
                let code = "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_PERSISTED_VIEW";
                self.no_stream(code, flow, stream, "a view", "make it a TEMPORARY VIEW");
                self.no_temporary(flow, reads);
            }
            (DatasetKind::TemporaryView, _) => self.bounded(flow, query, reads),
            // One flow too many: told already.
            (DatasetKind::MaterializedView, _) => {}
        }
    }

    fn append(&mut self, flow: &FlowDef, reads: &[Read], stream: Option<&Read>) {
        if flow.once {
            let code = "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW";
            let hint = "leave STREAM out: the flow runs once over all rows";
            self.no_stream(code, flow, stream, "a ONCE flow", hint);
            return;
        }
        self.needs_stream(flow, stream, "a streaming table");
        self.bounded(flow, flow.query(), reads);
        self.resets(flow, reads);
    }

    fn needs_stream(&mut self, flow: &FlowDef, stream: Option<&Read>, what: &str) {
        if stream.is_some() {
            return;
        }
        let span = flow.query().sources.first().map_or(flow.query().span, |s| s.span);
        let message = format!("{what} needs a streaming read, and this query reads batches only");
        let hint = "write FROM STREAM(table) or FROM STREAM read_files(…); or make it a \
                    MATERIALIZED VIEW";
        let code = "INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE";
        self.fail(code, flow, span, &message, hint);
    }

    fn no_stream(
        &mut self,
        code: &'static str,
        flow: &FlowDef,
        stream: Option<&Read>,
        what: &str,
        hint: &str,
    ) {
        if let Some(read) = stream {
            self.fail(code, flow, read.span, &format!("{what} reads a stream"), hint);
        }
    }

    fn no_temporary(&mut self, flow: &FlowDef, reads: &[Read]) {
        for read in reads {
            let Some(source) = read.dataset().map(|d| &self.definitions.datasets[d]) else {
                continue;
            };
            if source.ast.kind == DatasetKind::TemporaryView {
                let message = format!("a view must not read temporary view '{}'", source.name);
                let hint = "make both temporary or neither";
                self.fail("INVALID_TEMP_OBJ_REFERENCE", flow, read.span, &message, hint);
            }
        }
    }

    /// One read by itself: views read as what they are, streams of tables that only grow.
    fn read(&mut self, flow: &FlowDef, read: &Read) {
        let Some(index) = read.dataset() else {
            return;
        };
        let source = &self.definitions.datasets[index];
        if source.is_view() {
            let streaming = (source.flows.iter())
                .filter_map(|f| self.reads[*f].as_ref())
                .any(|reads| reads.iter().any(|r| r.streaming));
            let known = source.flows.iter().all(|f| self.reads[*f].is_some());
            let name = &source.name;
            if known && read.streaming && !streaming {
                let message = format!("view '{name}' is not a stream, but is read as one");
                let hint = "leave STREAM out here, or read a stream in the view";
                self.fail("INCOMPATIBLE_BATCH_VIEW_READ", flow, read.span, &message, hint);
            } else if known && !read.streaming && streaming {
                let message = format!("view '{name}' is a stream, but is read as a batch");
                let hint = format!("write STREAM({name})");
                self.fail("INCOMPATIBLE_STREAMING_VIEW_READ", flow, read.span, &message, &hint);
            }
        } else if read.streaming
            && matches!(read.target, Target::Dataset(_))
            && !self.only_grows(source)
        {
            let message = format!("'{}' gets updates and deletes: it is no stream", source.name);
            let hint = format!(
                "read it without STREAM in a materialized view, or read its change feed: STREAM \
                 table_changes('{}', 0)",
                source.name
            );
            self.fail("STREAMING_READ_OF_CHANGING_TABLE", flow, read.span, &message, &hint);
        }
    }

    /// Rows are only ever added, by kind or, for a materialized view, by its plan.
    fn only_grows(&self, dataset: &DatasetDef) -> bool {
        if dataset.ast.kind != DatasetKind::MaterializedView {
            return append_only(self.definitions, dataset);
        }
        let Some(&flow) = dataset.flows.first() else {
            return false;
        };
        let Some(bound) = &self.bound.flows[flow] else {
            // It has an error of its own.
            return true;
        };
        let text = &self.definitions.flows[flow].query().text;
        let plan = self.session.plan_view(text, &bound.sources(self.definitions));
        plan.is_ok_and(|p| p.technique() == Technique::AppendOnly)
    }

    /// Nothing that needs all rows of a stream, and no join of two streams.
    fn bounded(&mut self, flow: &FlowDef, query: &Query, reads: &[Read]) {
        const CODE: &str = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION";
        let streaming = |over: &[String]| {
            over.iter().any(|p| reads.iter().any(|r| r.streaming && r.placeholder == *p))
        };
        for u in query.unbounded.iter().filter(|u| streaming(&u.over)) {
            let message = format!("{} over a stream would have to see all of its rows", u.what);
            let hint = "write it in a MATERIALIZED VIEW over the table; it is refreshed \
                        incrementally";
            self.fail(CODE, flow, u.span, &message, hint);
        }
        for join in &query.joins {
            let sides = || join.sides.iter().filter(|s| streaming(&s.over));
            let count = sides().count();
            if count > 1 {
                let message = "a join of two streams would have to keep all of their rows";
                let hint = "read one side without STREAM, or join in a MATERIALIZED VIEW";
                self.fail(CODE, flow, join.span, message, hint);
            } else if count == 1 && join.sides.iter().any(|s| s.kept && !streaming(&s.over)) {
                let message = "this outer join keeps rows of the side that is no stream";
                let hint = "put the stream on the side whose rows are kept";
                self.fail(CODE, flow, join.span, message, hint);
            }
        }
    }

    /// A table that may not be reset does not stream from one that may.
    fn resets(&mut self, flow: &FlowDef, reads: &[Read]) {
        let resettable = |d: &DatasetDef| {
            d.ast.properties.get("pipelines.reset.allowed").is_none_or(|v| v != "false")
        };
        if resettable(&self.definitions.datasets[flow.target]) {
            return;
        }
        for read in reads.iter().filter(|r| r.streaming) {
            let Some(source) = read.dataset().map(|d| &self.definitions.datasets[d]) else {
                continue;
            };
            if source.ast.kind == DatasetKind::StreamingTable && resettable(source) {
                let message = format!(
                    "this table must not be reset, but reads '{}', which may be",
                    source.name
                );
                let hint = "set 'pipelines.reset.allowed' = 'false' on both";
                self.fail("INVALID_RESETTABLE_DEPENDENCY", flow, read.span, &message, hint);
            }
        }
    }
}
