//! The one error type of all crates: four classes, a stable code, the object, and what to do.

use std::fmt;

/// Result with deltaic's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whom an error is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The user's SQL, plan or configuration is wrong.
    User,
    /// Input data is malformed, late, or fails an expectation.
    Data,
    /// I/O, corruption or a conflicting writer.
    Storage,
    /// A bug in deltaic.
    Internal,
}

/// A place in a source file; line and column start at 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// Path as the user wrote it, relative to the project.
    pub file: String,
    /// 1-based line.
    pub line: u64,
    /// 1-based column, in characters.
    pub column: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// An error: class, stable code (see `docs/errors.md`), message, and where known the object it is
/// about, its place in the source, and a hint.
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    class: ErrorClass,
    code: &'static str,
    message: String,
    object: Option<String>,
    location: Option<Location>,
    hint: Option<String>,
}

impl Error {
    /// An error of the given class and code.
    pub fn new(class: ErrorClass, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            class,
            code,
            message: message.into(),
            object: None,
            location: None,
            hint: None,
        }))
    }

    /// The user's mistake.
    pub fn user(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::User, code, message)
    }

    /// Bad input data.
    pub fn data(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Data, code, message)
    }

    /// Storage failed.
    pub fn storage(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Storage, code, message)
    }

    /// Our bug.
    pub fn internal(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Internal, code, message)
    }

    /// Names the dataset, flow, file or column that the error is about (kept if already set).
    #[must_use]
    pub fn object(mut self, object: impl Into<String>) -> Self {
        self.0.object.get_or_insert_with(|| object.into());
        self
    }

    /// Sets the place in the source (kept if already set).
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.0.location.get_or_insert(location);
        self
    }

    /// Adds what the user can do (kept if already set).
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Whom the error is for.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// What is wrong, without object, place and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The object, if known.
    pub fn get_object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// The place in the source, if known.
    pub fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }

    /// The hint, if any.
    pub fn get_hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    /// `[CODE] file:line:column: 'object': message` and the hint on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &self.0;
        write!(f, "[{}] ", e.code)?;
        if let Some(location) = &e.location {
            write!(f, "{location}: ")?;
        }
        if let Some(object) = &e.object {
            write!(f, "'{object}': ")?;
        }
        write!(f, "{}", e.message)?;
        if let Some(hint) = &e.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<arrow::error::ArrowError> for Error {
    /// Arithmetic and cast failures of a kernel are the data's fault; the rest is ours.
    fn from(e: arrow::error::ArrowError) -> Self {
        use arrow::error::ArrowError as A;
        match &e {
            A::ArithmeticOverflow(_) => Self::data("ARITHMETIC_OVERFLOW", e.to_string()),
            A::DivideByZero => Self::data("DIVIDE_BY_ZERO", e.to_string()),
            A::CastError(_) | A::ParseError(_) => Self::data("CAST_INVALID_INPUT", e.to_string()),
            A::IoError(..) => Self::storage("IO", e.to_string()),
            _ => Self::internal("ARROW", e.to_string()),
        }
    }
}
