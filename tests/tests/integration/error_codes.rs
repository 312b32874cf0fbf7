//! Every error code that the code can give is explained in `docs/errors.md`.

use std::collections::BTreeSet;
use std::path::Path;

/// Codes given to the constructors of `Error` in a source text.
fn codes(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for constructor in ["Error::user(", "Error::data(", "Error::storage(", "Error::internal("] {
        for (at, _) in source.match_indices(constructor) {
            let rest = source[at + constructor.len()..].trim_start();
            let code = rest.strip_prefix('"').and_then(|r| r.split('"').next());
            let code = code.filter(|c| c.len() > 1 && !c.contains(char::is_lowercase));
            found.extend(code.map(str::to_owned));
        }
    }
    found
}

fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() && name != "tests" && name != "testkit" && name != "target" {
            collect(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "fault.rs" {
            let text = std::fs::read_to_string(&path).expect("readable");
            let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
            found.extend(codes(code));
        }
    }
}

#[test]
fn every_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut found = BTreeSet::new();
    collect(&root.join("crates"), &mut found);
    assert!(found.len() > 100, "the search finds too little: {found:?}");
    let page = std::fs::read_to_string(root.join("docs/errors.md")).expect("docs/errors.md");
    let missing: Vec<&String> = found
        .iter()
        .filter(|code| {
            let class = code.split('.').next().unwrap_or_default();
            !page.contains(&format!("`{code}`")) && !page.contains(&format!("`{class}`"))
        })
        .collect();
    assert!(missing.is_empty(), "docs/errors.md does not name {missing:?}");
}
