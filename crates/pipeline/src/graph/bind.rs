//! Inputs and schema of each query, in topological order, and the finished graph.

use std::cell::RefCell;
use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use deltaic_batch::{Error, Result};
use deltaic_plan::{
    RefreshPolicy, Session, Source, SourceTable, Sources, TypedExpression, type_name,
};
use deltaic_sql::{CdcSource, DatasetKind, Expectation, FlowBody, Query};

use super::definitions::{DatasetDef, Definitions, FlowDef};
use super::metadata;
use super::order::Order;
use super::places::{in_query, location, of_input};
use super::reads::{Read, Reads, Target};
use super::{
    CdcPlan, DatasetNode, FileSchemas, FlowInput, FlowKind, FlowNode, Graph, InputSource,
    SnapshotVersion, cdc, envelope, expectations, schema,
};
use crate::files::FileVersions;
use crate::near::near_names;
use crate::update::change_schema;

/// Code of an error that only follows from another one.
pub(super) const UPSTREAM: &str = "UPSTREAM_FAILED";

/// A flow whose query plans. Dataset indices are those of the definitions.
#[derive(Debug)]
pub(super) struct BoundFlow {
    /// Leaf inputs, each once.
    pub(super) inputs: Vec<FlowInput>,
    /// Views that it reaches.
    pub(super) views: BTreeMap<String, String>,
    /// Schema of the query.
    pub(super) schema: SchemaRef,
    /// Datasets that the query itself names, and whether as a stream.
    pub(super) reads: Vec<(usize, bool)>,
    /// AUTO CDC against that schema.
    pub(super) cdc: Option<CdcPlan>,
}

impl BoundFlow {
    /// What its names stand for.
    pub(super) fn sources(&self, definitions: &Definitions) -> Sources {
        sources(&self.inputs, &self.views, definitions)
    }
}

/// A dataset whose schema is known.
#[derive(Debug)]
pub(super) struct BoundDataset {
    /// Schema of its rows.
    pub(super) schema: SchemaRef,
    /// Expectations that bind.
    pub(super) expectations: Vec<(Expectation, TypedExpression)>,
}

/// What could be bound; `None` where something is wrong.
#[derive(Debug)]
pub(super) struct Bound {
    /// By index of the flow.
    pub(super) flows: Vec<Option<BoundFlow>>,
    /// By index of the dataset.
    pub(super) datasets: Vec<Option<BoundDataset>>,
    /// Things to tell the user that are not errors.
    pub(super) warnings: Vec<String>,
}

struct Binder<'a> {
    definitions: &'a Definitions,
    reads: &'a Reads,
    session: &'a Session,
    files: &'a dyn FileSchemas,
    bound: Bound,
    errors: &'a mut Vec<Error>,
    warnings: RefCell<Vec<String>>,
}

/// Binds all that can be bound.
pub(super) fn bind(
    definitions: &Definitions,
    reads: &Reads,
    order: &Order,
    session: &Session,
    files: &dyn FileSchemas,
    errors: &mut Vec<Error>,
) -> Bound {
    let bound = Bound {
        flows: definitions.flows.iter().map(|_| None).collect(),
        datasets: definitions.datasets.iter().map(|_| None).collect(),
        warnings: Vec::new(),
    };
    let warnings = RefCell::default();
    let mut binder = Binder { definitions, reads, session, files, bound, errors, warnings };
    for &dataset in &order.datasets {
        if !order.cyclic[dataset] {
            binder.dataset(dataset);
        }
    }
    let mut bound = binder.bound;
    bound.warnings = binder.warnings.into_inner();
    bound
}

impl Binder<'_> {
    fn dataset(&mut self, index: usize) {
        let definition = &self.definitions.datasets[index];
        for &flow in &definition.flows {
            self.bound.flows[flow] = self.flow(flow, definition);
        }
        let flows: Vec<(&FlowDef, &BoundFlow)> = (definition.flows.iter())
            .filter_map(|f| Some((&self.definitions.flows[*f], self.bound.flows[*f].as_ref()?)))
            .collect();
        let complete = flows.len() == definition.flows.len();
        let schema = match schema::of_dataset(definition, &flows, complete, self.session) {
            Ok(Some(schema)) => schema,
            Ok(None) => return,
            Err(errors) => return self.errors.extend(errors),
        };
        let expectations =
            expectations::bind(definition, &flows, &schema, self.session, self.errors);
        self.bound.datasets[index] = Some(BoundDataset { schema, expectations });
    }

    fn flow(&mut self, index: usize, target: &DatasetDef) -> Option<BoundFlow> {
        let flow = &self.definitions.flows[index];
        let reads = self.reads[index].as_ref()?;
        let failed = |r: &&Read| r.dataset().is_some_and(|d| self.bound.datasets[d].is_none());
        if let Some(read) = reads.iter().find(failed) {
            let name = read.dataset().map_or("", |d| &self.definitions.datasets[d].name);
            let message = format!("not checked: it reads '{name}', which has errors");
            let at = location(&flow.file, flow.span);
            self.errors.push(Error::user(UPSTREAM, message).object(&target.name).at(at));
            return None;
        }
        match self.query(flow, reads, target) {
            Ok(bound) => Some(bound),
            Err(errors) => {
                self.errors.extend(errors);
                None
            }
        }
    }

    fn query(
        &self,
        flow: &FlowDef,
        reads: &[Read],
        target: &DatasetDef,
    ) -> Result<BoundFlow, Vec<Error>> {
        let query = flow.query();
        let mut inputs = Inputs::default();
        for read in reads {
            let at = || location(&flow.file, read.span);
            self.read(read, metadata::is_read(&query.text), &mut inputs).map_err(|e| {
                vec![of_input(&e, e.location().cloned().unwrap_or_else(at), &target.name)]
            })?;
        }
        let Inputs { inputs, views } = inputs;
        let schema = self
            .session
            .query_schema(&query.text, &sources(&inputs, &views, self.definitions))
            .map_err(|e| vec![in_query(&e, query, &flow.file, &target.name)])?;
        let schema = if target.ast.kind == DatasetKind::StreamingTable {
            metadata::without(&schema, &inputs)
        } else {
            schema
        };
        let snapshots = self
            .snapshots(flow, &inputs, &schema)
            .map_err(|e| vec![of_input(&e, location(&flow.file, flow.span), &target.name)])?;
        let cdc = match &flow.body {
            FlowBody::Query(_) => None,
            FlowBody::Cdc(spec) => {
                let place = (flow.file.as_str(), target.name.as_str());
                let plan = cdc::plan(spec, &schema, snapshots, self.session, place)?;
                let warning = envelope::warning(spec, &plan, &schema, self.session, &target.name);
                self.warnings.borrow_mut().extend(warning);
                Some(plan)
            }
        };
        let mut named: Vec<(usize, bool)> =
            reads.iter().filter_map(|r| Some((r.dataset()?, r.streaming))).collect();
        named.sort_unstable();
        named.dedup();
        Ok(BoundFlow { inputs, views, schema, reads: named, cdc })
    }

    /// Which inputs are files that are snapshots, and what tells their versions.
    fn file_versions(&self, inputs: &[FlowInput]) -> Result<Vec<(usize, FileVersions)>> {
        let mut found = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            if let InputSource::Files(call) = &input.source
                && let Some(versions) = self.files.versions(call)?
            {
                found.push((at, versions));
            }
        }
        Ok(found)
    }

    /// What orders the snapshots that a flow reads; `None` if it reads none.
    fn snapshots(
        &self,
        flow: &FlowDef,
        inputs: &[FlowInput],
        schema: &Schema,
    ) -> Result<Option<SnapshotVersion>> {
        let mut found = self.file_versions(inputs)?;
        let wrong = |message: &str, hint: &str| {
            Err(Error::user("SNAPSHOT_VERSION", message).hint(hint.to_owned()))
        };
        let is_snapshot = match &flow.body {
            FlowBody::Cdc(spec) => matches!(spec.source, CdcSource::Snapshot(_)),
            FlowBody::Query(_) => false,
        };
        if !is_snapshot {
            return match found.is_empty() {
                true => Ok(None),
                false => wrong(
                    "versionPattern and versionColumn order snapshots, and this reads none",
                    "leave them out, or write AUTO CDC … FROM SNAPSHOT read_files(…)",
                ),
            };
        }
        match (found.pop(), found.is_empty()) {
            (None, _) => Ok(Some(SnapshotVersion::Update)),
            (Some((input, FileVersions::Pattern(pattern))), true) => {
                Ok(Some(SnapshotVersion::Path { input, pattern }))
            }
            (Some((input, FileVersions::Column(name))), true) => {
                version_column(input, &name, schema).map(Some)
            }
            (Some(_), false) => wrong(
                "a snapshot has one version",
                "give versionPattern or versionColumn to one read_files only",
            ),
        }
    }

    /// Adds what is read; files with their `_metadata` where the query names it.
    fn read(&self, read: &Read, with_metadata: bool, inputs: &mut Inputs) -> Result<()> {
        let dataset_schema = |d: usize| {
            let bound = self.bound.datasets[d].as_ref();
            bound.map_or_else(|| Schema::empty().into(), |b| b.schema.clone())
        };
        let (source, schema) = match &read.target {
            Target::Dataset(d) if self.definitions.datasets[*d].is_view() => {
                return self.view(read, *d, inputs);
            }
            Target::Dataset(d) => (InputSource::Dataset(*d), dataset_schema(*d)),
            Target::Files(call) => {
                let schema = self.files.schema(call)?;
                let schema = if with_metadata { metadata::with(&schema) } else { schema };
                (InputSource::Files(call.clone()), schema)
            }
            Target::External(path) => {
                (InputSource::External(path.clone()), self.files.external(path)?)
            }
            Target::ExternalChanges { path, from, to } => (
                InputSource::ExternalChanges { path: path.clone(), from: *from, to: *to },
                change_schema(&*self.files.external_delta(path)?),
            ),
            Target::Changes { dataset, from, to } => (
                InputSource::Changes { dataset: *dataset, from: *from, to: *to },
                change_schema(&dataset_schema(*dataset)),
            ),
        };
        let name = read.placeholder.clone();
        inputs.add(FlowInput { name, source, streaming: read.streaming, schema })
    }

    fn view(&self, read: &Read, view: usize, inputs: &mut Inputs) -> Result<()> {
        let flow = self.definitions.datasets[view].flows.first().copied();
        let Some((text, bound)) = flow.and_then(|f| {
            let text = self.definitions.flows[f].query().text.clone();
            Some((text, self.bound.flows[f].as_ref()?))
        }) else {
            return Err(Error::internal("GRAPH", "a view is read before it is bound"));
        };
        for input in &bound.inputs {
            inputs.add(input.clone())?;
        }
        for (name, text) in &bound.views {
            inputs.add_view(name, text)?;
        }
        inputs.add_view(&read.placeholder, &text)
    }
}

#[derive(Debug, Default)]
struct Inputs {
    inputs: Vec<FlowInput>,
    views: BTreeMap<String, String>,
}

impl Inputs {
    fn add(&mut self, input: FlowInput) -> Result<()> {
        if self.views.contains_key(&input.name) {
            return Err(two_meanings(&input.name));
        }
        match self.inputs.iter().find(|i| i.name == input.name) {
            None => self.inputs.push(input),
            Some(same) if same_source(&same.source, &input.source) => {}
            Some(_) => return Err(two_meanings(&input.name)),
        }
        Ok(())
    }

    fn add_view(&mut self, name: &str, text: &str) -> Result<()> {
        let table = self.inputs.iter().any(|i| i.name == name);
        match self.views.insert(name.to_owned(), text.to_owned()) {
            Some(other) if other != text => Err(two_meanings(name)),
            _ if table => Err(two_meanings(name)),
            _ => Ok(()),
        }
    }
}

fn version_column(input: usize, name: &str, schema: &Schema) -> Result<SnapshotVersion> {
    let names = || schema.fields().iter().map(|f| f.name().as_str());
    let Some(column) = names().position(|n| n.eq_ignore_ascii_case(name)) else {
        let error = Error::user("SNAPSHOT_VERSION", format!("versionColumn '{name}' is not there"));
        return Err(match near_names(name, names()).first() {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => {
                error.hint(format!("the rows have: {}", names().collect::<Vec<_>>().join(", ")))
            }
        });
    };
    let data_type = schema.field(column).data_type();
    let version = match data_type {
        integer if integer.is_integer() => DataType::Int64,
        DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, _) => data_type.clone(),
        other => {
            let message = format!("versionColumn '{name}' is {}", type_name(other));
            return Err(Error::user("SNAPSHOT_VERSION", message)
                .hint("a version is a whole number, a DATE or a TIMESTAMP"));
        }
    };
    Ok(SnapshotVersion::Column { input, column, data_type: version })
}

fn two_meanings(name: &str) -> Error {
    let message = format!("'{name}' means one table here and another in a view that is read here");
    Error::user("AMBIGUOUS_REFERENCE", message).hint("write the schema before the name in both")
}

fn same_source(a: &InputSource, b: &InputSource) -> bool {
    match (a, b) {
        (InputSource::Dataset(a), InputSource::Dataset(b)) => a == b,
        (InputSource::Files(a), InputSource::Files(b)) => a == b,
        (InputSource::External(a), InputSource::External(b)) => a == b,
        (
            InputSource::Changes { dataset: a, from: from_a, to: to_a },
            InputSource::Changes { dataset: b, from: from_b, to: to_b },
        ) => (a, from_a, to_a) == (b, from_b, to_b),
        (
            InputSource::ExternalChanges { path: a, from: from_a, to: to_a },
            InputSource::ExternalChanges { path: b, from: from_b, to: to_b },
        ) => (a, from_a, to_a) == (b, from_b, to_b),
        (
            InputSource::Dataset(_)
            | InputSource::Files(_)
            | InputSource::External(_)
            | InputSource::ExternalChanges { .. }
            | InputSource::Changes { .. },
            _,
        ) => false,
    }
}

fn sources(
    inputs: &[FlowInput],
    views: &BTreeMap<String, String>,
    definitions: &Definitions,
) -> Sources {
    let table = |input: &FlowInput| {
        let append_only = match input.source {
            InputSource::Dataset(d) => {
                input.streaming || append_only(definitions, &definitions.datasets[d])
            }
            InputSource::Files(_) => true,
            InputSource::External(_)
            | InputSource::ExternalChanges { .. }
            | InputSource::Changes { .. } => false,
        };
        SourceTable { schema: input.schema.clone(), append_only, rows: None }
    };
    let tables = inputs.iter().map(|i| (i.name.clone(), Source::Table(table(i))));
    let views = views.iter().map(|(n, sql)| (n.clone(), Source::View { sql: sql.clone() }));
    tables.chain(views).collect()
}

/// Rows are only ever added: a streaming table without AUTO CDC.
pub(super) fn append_only(definitions: &Definitions, dataset: &DatasetDef) -> bool {
    dataset.ast.kind == DatasetKind::StreamingTable
        && (dataset.flows.iter()).all(|f| matches!(definitions.flows[*f].body, FlowBody::Query(_)))
}

/// The graph of a project without errors.
pub(super) fn finish(mut definitions: Definitions, order: &Order, mut bound: Bound) -> Graph {
    let mut position = vec![0; definitions.datasets.len()];
    order.datasets.iter().enumerate().for_each(|(n, d)| position[*d] = n);
    let mut graph = Graph {
        datasets: Vec::with_capacity(order.datasets.len()),
        flows: Vec::new(),
        warnings: std::mem::take(&mut definitions.warnings),
    };
    graph.warnings.append(&mut bound.warnings);
    for (target, &index) in order.datasets.iter().enumerate() {
        let append_only = append_only(&definitions, &definitions.datasets[index]);
        let definition = &definitions.datasets[index];
        let Some(dataset) = bound.datasets[index].take() else { continue };
        let mut node = dataset_node(definition, dataset, append_only);
        node.quarantine_of = definition.quarantine_of.map(|origin| position[origin]);
        for &flow in &definition.flows {
            let Some(mut flow_bound) = bound.flows[flow].take() else { continue };
            flow_bound.inputs.iter_mut().for_each(|i| renumber(&mut i.source, &position));
            flow_bound.reads.iter_mut().for_each(|(d, _)| *d = position[*d]);
            let flow = &definitions.flows[flow];
            if definition.is_view() {
                node.view_query = Some(flow.query().text.clone());
                node.view_inputs = flow_bound.inputs;
                node.view_views = flow_bound.views;
                node.reads = flow_bound.reads;
            } else {
                node.flows.push(graph.flows.len());
                graph.flows.push(flow_node(flow, flow_bound, target, definition));
            }
        }
        graph.datasets.push(node);
    }
    for dataset in 0..graph.datasets.len() {
        if let Some(origin) = graph.datasets[dataset].quarantine_of {
            graph.datasets[origin].quarantine = Some(dataset);
        }
    }
    graph
}

fn renumber(source: &mut InputSource, position: &[usize]) {
    match source {
        InputSource::Dataset(d) | InputSource::Changes { dataset: d, .. } => *d = position[*d],
        InputSource::Files(_) | InputSource::External(_) | InputSource::ExternalChanges { .. } => {}
    }
}

fn dataset_node(definition: &DatasetDef, bound: BoundDataset, append_only: bool) -> DatasetNode {
    let ast = &definition.ast;
    DatasetNode {
        key: definition.key.clone(),
        name: definition.name.clone(),
        kind: ast.kind,
        schema: bound.schema,
        expectations: bound.expectations,
        comment: ast.comment.clone(),
        properties: ast.properties.clone(),
        refresh_policy: match ast.refresh_policy {
            deltaic_sql::RefreshPolicy::Auto => RefreshPolicy::Auto,
            deltaic_sql::RefreshPolicy::Incremental => RefreshPolicy::Incremental,
            deltaic_sql::RefreshPolicy::IncrementalStrict => RefreshPolicy::IncrementalStrict,
            deltaic_sql::RefreshPolicy::Full => RefreshPolicy::Full,
        },
        flows: Vec::new(),
        view_query: None,
        view_inputs: Vec::new(),
        view_views: BTreeMap::new(),
        reads: Vec::new(),
        append_only,
        quarantine: None,
        quarantine_of: None,
        location: location(&definition.file, ast.name.span),
    }
}

fn flow_node(flow: &FlowDef, bound: BoundFlow, target: usize, dataset: &DatasetDef) -> FlowNode {
    let kind = match (&flow.body, bound.cdc) {
        (FlowBody::Cdc(spec), Some(plan)) => match spec.source {
            CdcSource::Events(_) => FlowKind::AutoCdc(Box::new(plan)),
            CdcSource::Snapshot(_) => FlowKind::AutoCdcSnapshot(Box::new(plan)),
        },
        _ if dataset.ast.kind == DatasetKind::MaterializedView => FlowKind::View,
        _ => FlowKind::Append,
    };
    let query: &Query = flow.query();
    FlowNode {
        name: flow.name.clone(),
        target,
        kind,
        query: query.text.clone(),
        views: bound.views,
        inputs: bound.inputs,
        reads: bound.reads,
        schema: bound.schema,
        once: flow.once,
        configuration: flow.configuration.clone(),
        location: location(&flow.file, flow.span),
    }
}
