//! Why a command ends early, and how that is told: code, place, message, the line of the source
//! with a caret, hint.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use deltaic_batch::{Error, ErrorClass};
use deltaic_pipeline::{Errors, Project};
use serde_json::{Value, json};

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Complaint {
    /// Errors of the project or of a run.
    Errors(Vec<Error>, Sources),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Complaint {
    fn from(e: io::Error) -> Self {
        Self::Output(e)
    }
}

impl Complaint {
    /// With the texts that the places of the errors refer to.
    pub(crate) fn new(errors: impl Into<Errors>, sources: &Sources) -> Self {
        Self::Errors(errors.into().0, sources.clone())
    }

    /// Tells it on standard error; the exit code.
    pub(crate) fn tell(&self) -> u8 {
        match self {
            // The reader has gone: nobody is left to tell.
            Self::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(e) => {
                say(&format!("error: cannot write to standard output: {e}"));
                1
            }
            Self::Errors(errors, sources) => {
                for error in errors {
                    say(&render(error, sources, None, colour()));
                }
                if errors.len() > 1 {
                    say(&format!("{} errors", errors.len()));
                }
                exit_code(errors)
            }
        }
    }
}

/// 2 when the user's input is wrong, 1 when something else failed.
pub(crate) fn exit_code(errors: &[Error]) -> u8 {
    if errors.iter().all(|e| e.class() == ErrorClass::User) { 2 } else { 1 }
}

/// A line on standard error; a closed one is no reason to fail.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Escape sequences are welcome.
pub(crate) fn colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Where the texts of a project's files are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    files: Vec<(String, String)>,
    folder: PathBuf,
}

impl Sources {
    /// Before the project is loaded: files below `folder` or a parent.
    pub(crate) fn near(folder: &Path) -> Self {
        Self { files: Vec::new(), folder: folder.to_path_buf() }
    }

    /// A loaded project.
    pub(crate) fn of(project: &Project) -> Self {
        let files = project.files.iter().map(|f| (f.path.clone(), f.text.clone())).collect();
        Self { files, folder: project.root.clone() }
    }

    /// A text that stands in no file.
    pub(crate) fn and(&self, name: &str, text: &str) -> Self {
        let mut more = self.clone();
        more.files.push((name.to_owned(), text.to_owned()));
        more
    }

    fn line(&self, file: &str, line: u64) -> Option<String> {
        let nth = usize::try_from(line).ok()?.checked_sub(1)?;
        if let Some((_, text)) = self.files.iter().find(|(path, _)| path == file) {
            return text.lines().nth(nth).map(str::to_owned);
        }
        let folder = std::path::absolute(&self.folder).ok()?;
        let path = folder.ancestors().map(|dir| dir.join(file)).find(|path| path.is_file())?;
        std::fs::read_to_string(path).ok()?.lines().nth(nth).map(str::to_owned)
    }
}

/// `error[CODE] file:line:column: dataset 'x': message`, the line, a caret, the hint. Errors of the
/// project's SQL name their dataset themselves; for others it is given.
pub(crate) fn render(
    error: &Error,
    sources: &Sources,
    dataset: Option<&str>,
    colour: bool,
) -> String {
    let (red, bold, plain) =
        if colour { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    let mut text = format!("{red}error[{}]{plain} ", error.code());
    if let Some(at) = error.location() {
        let place = if at.file.is_empty() {
            format!("{}:{}: ", at.line, at.column)
        } else {
            format!("{at}: ")
        };
        text += &place;
    }
    if let Some(dataset) = dataset {
        text += &format!("dataset '{dataset}': ");
    }
    if let Some(object) = error.get_object().filter(|o| dataset != Some(*o)) {
        let is_dataset = dataset.is_none() && error.location().is_some();
        text += &format!("{}'{object}': ", if is_dataset { "dataset " } else { "" });
    }
    text += &format!("{bold}{}{plain}", error.message());
    let line = error.location().and_then(|at| Some((sources.line(&at.file, at.line)?, at)));
    if let Some((line, at)) = line {
        let number = at.line.to_string();
        let margin = " ".repeat(number.len());
        let before = usize::try_from(at.column).unwrap_or(1).saturating_sub(1);
        // Tabs stay tabs, so that the caret stands under its column.
        let indent: String =
            line.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        text += &format!("\n {margin} |\n {number} | {line}\n {margin} | {indent}{red}^{plain}");
    }
    if let Some(hint) = error.get_hint() {
        text += &format!("\n  hint: {hint}");
    }
    text
}

/// An error for programs.
pub(crate) fn as_json(error: &Error) -> Value {
    let class = match error.class() {
        ErrorClass::User => "user",
        ErrorClass::Data => "data",
        ErrorClass::Storage => "storage",
        ErrorClass::Internal => "internal",
    };
    json!({
        "code": error.code(),
        "class": class,
        "message": error.message(),
        "object": error.get_object(),
        "file": error.location().map(|l| l.file.as_str()),
        "line": error.location().map(|l| l.line),
        "column": error.location().map(|l| l.column),
        "hint": error.get_hint(),
    })
}

#[cfg(test)]
mod tests {
    use deltaic_batch::Location;

    use super::*;

    #[test]
    fn an_error_shows_its_line() {
        let at = Location { file: "a.sql".into(), line: 2, column: 9 };
        let error = Error::user("X", "no such thing").object("v").at(at).hint("look again");
        let sources = Sources::default().and("a.sql", "SELECT\n\ta, b, wörng\n");
        assert_eq!(
            render(&error, &sources, None, false),
            "error[X] a.sql:2:9: dataset 'v': no such thing\n   |\n 2 | \ta, b, wörng\n   | \t       ^\n  hint: look again"
        );
    }

    #[test]
    fn an_error_without_place_is_one_line() {
        let error = Error::storage("IO", "disk full").object("t");
        let none = Sources::default();
        assert_eq!(render(&error, &none, None, false), "error[IO] 't': disk full");
        assert_eq!(
            render(&error, &none, Some("d"), false),
            "error[IO] dataset 'd': 't': disk full"
        );
        assert_eq!(exit_code(&[error]), 1);
    }
}
