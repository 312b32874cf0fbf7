//! All files parsed: datasets and flows with their keys; duplicates.

use std::collections::{BTreeMap, HashMap};

use deltaic_batch::Error;
use deltaic_sql::{
    CdcSource, Dataset, DatasetKind, Flow, FlowBody, Name, Query, Span, Statement, parse_file,
};

use super::names::Scope;
use super::places::location;
use crate::Project;
use crate::near::near_names;

/// A defined dataset.
#[derive(Debug)]
pub(super) struct DatasetDef {
    /// See [`super::DatasetNode::key`].
    pub(super) key: String,
    /// As written.
    pub(super) name: String,
    /// The statement.
    pub(super) ast: Dataset,
    /// Path of its file.
    pub(super) file: String,
    /// Flows into it, by index.
    pub(super) flows: Vec<usize>,
    /// The dataset whose rows it has that were not taken.
    pub(super) quarantine_of: Option<usize>,
}

impl DatasetDef {
    /// A view, temporary or not: inlined, never stored.
    pub(super) fn is_view(&self) -> bool {
        matches!(self.ast.kind, DatasetKind::TemporaryView | DatasetKind::View)
    }
}

/// A flow; the query of a view counts as one.
#[derive(Debug)]
pub(super) struct FlowDef {
    /// Its name; the dataset's for an implicit flow.
    pub(super) name: String,
    /// Index of the dataset.
    pub(super) target: usize,
    /// What it does.
    pub(super) body: FlowBody,
    /// `ONCE`.
    pub(super) once: bool,
    /// Defined with its dataset.
    pub(super) implicit: bool,
    /// Place of the statement.
    pub(super) span: Span,
    /// Path of its file.
    pub(super) file: String,
    /// What names mean in it.
    pub(super) scope: Scope,
    /// Configuration where it stands.
    pub(super) configuration: BTreeMap<String, String>,
}

impl FlowDef {
    /// AUTO CDC of change events.
    pub(super) fn is_cdc_of_events(&self) -> bool {
        matches!(&self.body, FlowBody::Cdc(cdc) if matches!(cdc.source, CdcSource::Events(_)))
    }

    /// The query that yields its rows.
    pub(super) fn query(&self) -> &Query {
        match &self.body {
            FlowBody::Query(query) => query,
            FlowBody::Cdc(cdc) => match &cdc.source {
                CdcSource::Events(query) | CdcSource::Snapshot(query) => query,
            },
        }
    }
}

/// Everything that the files define.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// In the order of files and statements.
    pub(super) datasets: Vec<DatasetDef>,
    /// In the same order.
    pub(super) flows: Vec<FlowDef>,
    /// Datasets by key.
    pub(super) by_key: HashMap<String, usize>,
    /// Things to tell that are not errors.
    pub(super) warnings: Vec<String>,
}

impl Definitions {
    /// The dataset of a name: temporary views first, then tables by schema.
    pub(super) fn find(&self, name: &Name, scope: &Scope) -> Option<usize> {
        if let [one] = &name.parts[..]
            && let Some(&n) = self.by_key.get(&one.to_lowercase())
            && self.datasets[n].ast.kind == DatasetKind::TemporaryView
        {
            return Some(n);
        }
        self.by_key.get(&scope.key(name)).copied()
    }

    /// `TABLE_OR_VIEW_NOT_FOUND` with near names.
    pub(super) fn not_found(&self, name: &Name, file: &str, object: &str) -> Error {
        let written = name.parts.join(".");
        let known = self.datasets.iter().map(|d| d.name.as_str());
        let near = near_names(&written, known);
        let error = Error::user(
            "TABLE_OR_VIEW_NOT_FOUND",
            format!("there is no table or view '{written}'"),
        );
        let error = error.object(object).at(location(file, name.span));
        match near[..] {
            [] => error,
            _ => error.hint(format!("did you mean {}?", quoted(&near))),
        }
    }
}

/// `'a' or 'b'`.
fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(" or ")
}

/// Explicit flows wait until all datasets are known.
struct Pending {
    flow: Flow,
    file: String,
    scope: Scope,
    configuration: BTreeMap<String, String>,
}

/// Parses all files of the project.
pub(super) fn collect(project: &Project, errors: &mut Vec<Error>) -> Definitions {
    let mut definitions = Definitions::default();
    let mut pending = Vec::new();
    for (n, file) in project.files.iter().enumerate() {
        let (statements, wrong) = parse_file(&file.text, n);
        errors.extend(wrong.into_iter().map(|e| {
            let error = Error::user(super::PARSE, e.message);
            let error = error.at(location(&file.path, e.span));
            match e.hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }));
        let mut scope = Scope::of(project);
        let mut configuration = project.configuration.clone();
        for statement in statements {
            match statement {
                Statement::Set { key, value, .. } => {
                    configuration.insert(key, value);
                }
                Statement::Use { catalog, name } => scope.enter(catalog, &name),
                Statement::Sink(sink) => errors.push(no_sinks(&sink.name, &file.path, sink.span)),
                Statement::Dataset(ast) => {
                    let (scope, conf) = (scope.clone(), configuration.clone());
                    definitions.add(*ast, &file.path, scope, conf, errors);
                }
                Statement::Flow(flow) => pending.push(Pending {
                    flow: *flow,
                    file: file.path.clone(),
                    scope: scope.clone(),
                    configuration: configuration.clone(),
                }),
            }
        }
    }
    for p in pending {
        definitions.add_flow(p, errors);
    }
    super::quarantine::add(&mut definitions, errors);
    if errors.is_empty() && definitions.datasets.iter().all(DatasetDef::is_view) {
        let message = "the project defines no table or materialized view";
        let hint = "check that the files lie where 'libraries' of the project file says";
        errors.push(Error::user("RUN_EMPTY_PIPELINE", message).hint(hint));
    }
    definitions
}

fn no_sinks(name: &Name, file: &str, span: Span) -> Error {
    let message = "sinks are not supported yet";
    Error::user("UNSUPPORTED_FEATURE", message)
        .object(name.parts.join("."))
        .at(location(file, span))
        .hint("write into a streaming table or a materialized view")
}

fn duplicate(what: &str, name: &str, first: String, file: &str, span: Span) -> Error {
    let code = match what {
        "flow" => "PIPELINE_DUPLICATE_IDENTIFIERS.FLOW",
        _ => "PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT",
    };
    Error::user(code, format!("{what} '{name}' is defined twice, first at {first}"))
        .object(name)
        .at(location(file, span))
        .hint("give one of them another name")
}

impl Definitions {
    fn add(
        &mut self,
        mut ast: Dataset,
        file: &str,
        scope: Scope,
        configuration: BTreeMap<String, String>,
        errors: &mut Vec<Error>,
    ) {
        let name = ast.name.parts.join(".");
        let temporary = ast.kind == DatasetKind::TemporaryView;
        if temporary && ast.name.parts.len() > 1 {
            let message = "a temporary view has a name of one part";
            errors.push(
                Error::user("INVALID_TEMP_OBJ_QUALIFIER", message)
                    .object(name)
                    .at(location(file, ast.name.span)),
            );
            return;
        }
        let key = if temporary { name.to_lowercase() } else { scope.key(&ast.name) };
        if let Some(&first) = self.by_key.get(&key) {
            let first = &self.datasets[first];
            let first = location(&first.file, first.ast.name.span).to_string();
            errors.push(duplicate("dataset", &name, first, file, ast.name.span));
            return;
        }
        if !ast.partitioned_by.is_empty() || !ast.cluster_by.is_empty() {
            let at = location(file, ast.name.span);
            self.warnings.push(format!(
                "{at}: dataset '{name}': PARTITIONED BY and CLUSTER BY do not change the layout yet"
            ));
        }
        let target = self.datasets.len();
        self.by_key.insert(key.clone(), target);
        let body = ast.body.take();
        let span = ast.name.span;
        let mut flows = Vec::new();
        if let Some(body) = body {
            flows.push(self.flows.len());
            self.flows.push(FlowDef {
                name: name.clone(),
                target,
                body,
                once: false,
                implicit: true,
                span,
                file: file.to_owned(),
                scope,
                configuration,
            });
        }
        let file = file.to_owned();
        self.datasets.push(DatasetDef { key, name, ast, file, flows, quarantine_of: None });
    }

    pub(super) fn add_quarantine(&mut self, quarantine: DatasetDef, errors: &mut Vec<Error>) {
        if let Some(&other) = self.by_key.get(&quarantine.key) {
            let other = &self.datasets[other];
            let (name, at) = (&other.name, location(&quarantine.file, quarantine.ast.name.span));
            let message =
                format!("the rows that it diverts go into '{name}', which is defined here");
            let code = "PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT";
            errors.push(
                Error::user(code, message)
                    .object(&other.name)
                    .at(location(&other.file, other.ast.name.span))
                    .hint(format!("give it another name than that of the quarantine of {at}")),
            );
            return;
        }
        self.by_key.insert(quarantine.key.clone(), self.datasets.len());
        self.datasets.push(quarantine);
    }

    fn add_flow(&mut self, p: Pending, errors: &mut Vec<Error>) {
        let flow = p.flow;
        let name = flow.name.parts.join(".");
        if flow.name.parts.len() > 1 {
            let message = "a flow has a name of one part";
            errors.push(
                Error::user("MULTIPART_FLOW_NAME_NOT_SUPPORTED", message)
                    .object(name)
                    .at(location(&p.file, flow.name.span)),
            );
            return;
        }
        if flow.update {
            errors.push(no_sinks(&flow.target, &p.file, flow.target.span));
            return;
        }
        let same = |f: &&FlowDef| {
            let view = self.datasets[f.target].is_view();
            !view && f.name.eq_ignore_ascii_case(&name)
        };
        if let Some(first) = self.flows.iter().find(same) {
            let first = location(&first.file, first.span).to_string();
            errors.push(duplicate("flow", &name, first, &p.file, flow.name.span));
            return;
        }
        let Some(target) = self.find(&flow.target, &p.scope) else {
            let error = self.not_found(&flow.target, &p.file, &name);
            let hint = format!("create it: CREATE STREAMING TABLE {}", flow.target.parts.join("."));
            errors.push(error.hint(hint));
            return;
        };
        self.datasets[target].flows.push(self.flows.len());
        self.flows.push(FlowDef {
            name,
            target,
            body: flow.body,
            once: flow.once,
            implicit: false,
            span: flow.name.span,
            file: p.file,
            scope: p.scope,
            configuration: p.configuration,
        });
    }
}
