//! Embeds the example project that `deltaic init` writes, so that the binary stands alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const EXAMPLE: &str = "../../examples/medallion";

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let root = manifest.join(EXAMPLE);
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &root, &mut files)?;
    files.sort();
    let mut code = String::from("&[\n");
    for file in &files {
        let path = root.join(file).canonicalize()?;
        writeln!(code, "    ({file:?}, include_bytes!({path:?}) as &[u8]),")
            .map_err(io::Error::other)?;
    }
    code.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("example.rs"), code)
}

/// Paths of all files, but for what a run of the example leaves behind.
fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "storage" {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            let relative = path.strip_prefix(root).map_err(io::Error::other)?;
            let parts: Vec<_> =
                relative.components().map(|c| c.as_os_str().to_string_lossy()).collect();
            files.push(parts.join("/"));
        }
    }
    Ok(())
}
