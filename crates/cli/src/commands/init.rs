//! `deltaic init`: writes the example project.

use std::fs;
use std::path::Path;

use deltaic_batch::Error;

use crate::complaint::{Complaint, Sources};
use crate::output::Out;

/// Path and content of each file.
const EXAMPLE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/example.rs"));

/// Writes the example into a folder that is new or empty.
pub(super) fn init(dir: &Path, out: &mut Out) -> Result<(), Complaint> {
    write(dir).map_err(|e| Complaint::new(e, &Sources::default()))?;
    let name = dir.display();
    out.line(&format!("Wrote a project into {name}. Next:"))?;
    out.line(&format!("  cd {name}"))?;
    out.line("  deltaic run")?;
    out.line("  deltaic query 'SELECT * FROM daily_revenue ORDER BY order_date, tier'")?;
    out.line("Then land more files and run again:")?;
    out.line("  cp -r later/* landing/ && deltaic run")
}

fn write(dir: &Path) -> Result<(), Error> {
    let taken = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => dir.exists(),
    };
    if taken {
        return Err(Error::user("FOLDER_NOT_EMPTY", "something is there already")
            .object(dir.display().to_string())
            .hint("name a folder that is empty or does not exist"));
    }
    for (path, content) in EXAMPLE {
        let path = dir.join(path);
        let io = |e: std::io::Error| {
            Error::storage("IO", format!("cannot write it: {e}")).object(path.display().to_string())
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        fs::write(&path, content).map_err(io)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_whole_and_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("shop");
        write(&target).unwrap();
        let project = deltaic_pipeline::Project::load(&target).unwrap();
        assert!(!project.files.is_empty());
        assert!(target.join("landing").is_dir());
        assert_eq!(write(&target).unwrap_err().code(), "FOLDER_NOT_EMPTY");
    }
}
