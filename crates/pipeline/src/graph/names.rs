//! What a name means: the project's defaults, and `USE` before it in its file.

use deltaic_sql::Name;

use crate::Project;

/// Catalog and schema that unqualified names belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// The project's own.
    default_catalog: Option<String>,
    default_schema: String,
    /// As `USE` says.
    catalog: Option<String>,
    schema: Option<String>,
}

impl Scope {
    /// At the start of a file.
    pub(super) fn of(project: &Project) -> Self {
        let default_catalog = project.catalog.as_ref().map(|c| c.to_lowercase());
        let default_schema = project.schema.to_lowercase();
        Self {
            catalog: default_catalog.clone(),
            schema: Some(default_schema.clone()),
            default_catalog,
            default_schema,
        }
    }

    /// `USE`. A change of catalog clears the schema.
    pub(super) fn enter(&mut self, catalog: bool, name: &Name) {
        let parts: Vec<String> = name.parts.iter().map(|p| p.to_lowercase()).collect();
        match (&parts[..], catalog) {
            ([one], true) => {
                self.catalog = Some(one.clone());
                self.schema = None;
            }
            ([one], false) => self.schema = Some(one.clone()),
            ([.., first, last], _) => {
                self.catalog = Some(first.clone());
                self.schema = Some(last.clone());
            }
            ([], _) => {}
        }
    }

    /// Lower-case, qualified only when it is not in the project's default schema.
    pub(super) fn key(&self, name: &Name) -> String {
        let mut parts = name.parts.iter().rev().map(|p| p.to_lowercase());
        let table = parts.next().unwrap_or_default();
        let named_schema = parts.next();
        let named_catalog = parts.next();
        let catalog = match (&named_catalog, &named_schema) {
            (Some(catalog), _) => Some(catalog.clone()),
            (None, _) => self.catalog.clone(),
        };
        let schema = named_schema
            .or_else(|| self.schema.clone())
            .unwrap_or_else(|| self.default_schema.clone());
        if catalog != self.default_catalog && catalog.is_some() {
            return format!("{}.{schema}.{table}", catalog.unwrap_or_default());
        }
        if schema == self.default_schema { table } else { format!("{schema}.{table}") }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use deltaic_sql::Span;

    use super::*;

    fn scope(catalog: Option<&str>) -> Scope {
        Scope::of(&Project {
            root: PathBuf::new(),
            name: "p".into(),
            storage: PathBuf::new(),
            catalog: catalog.map(str::to_owned),
            schema: "Main".into(),
            configuration: BTreeMap::new(),
            files: Vec::new(),
            uncovered: Vec::new(),
        })
    }

    fn name(text: &str) -> Name {
        Name { parts: text.split('.').map(str::to_owned).collect(), span: Span::default() }
    }

    #[test]
    fn names_of_the_default_schema_are_short() {
        let scope = scope(Some("Cat"));
        for text in ["T", "main.t", "CAT.main.T"] {
            assert_eq!(scope.key(&name(text)), "t");
        }
        assert_eq!(scope.key(&name("other.T")), "other.t");
        assert_eq!(scope.key(&name("c2.main.T")), "c2.main.t");
    }

    #[test]
    fn use_changes_what_short_names_mean() {
        let mut scope = scope(None);
        scope.enter(false, &name("s"));
        assert_eq!(scope.key(&name("t")), "s.t");
        assert_eq!(scope.key(&name("main.t")), "t");
        scope.enter(true, &name("c"));
        assert_eq!(scope.key(&name("t")), "c.main.t");
        scope.enter(false, &name("c.s"));
        assert_eq!(scope.key(&name("t")), "c.s.t");
    }
}
