//! What is wrong with a scenario, where, and what would be right.

use lasthop_units::count;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a scenario could not be loaded. Rendered with the source excerpt by miette.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the scenario {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file was read, and is wrong in the places listed.
    #[error("{name}: {} in this scenario", count(problems.len(), "problem"))]
    Invalid {
        /// The file, as it was named by the caller.
        name: String,
        /// At least one, in the order of the file.
        problems: Vec<Problem>,
    },
}

impl Error {
    /// Everything that is wrong in the file; empty if it could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Error::Unreadable { .. } => &[],
            Error::Invalid { problems, .. } => problems,
        }
    }

    /// One line a problem: `file:line:column: key: what; found …; what would be right`. For logs, and for where
    /// no terminal is.
    pub fn plain(&self) -> String {
        match self {
            Error::Unreadable { source, .. } => format!("{self}: {source}"),
            Error::Invalid { problems, .. } => problems.iter().map(Problem::plain).collect::<Vec<_>>().join("\n"),
        }
    }
}

impl Diagnostic for Error {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        match self {
            Error::Unreadable { .. } => None,
            Error::Invalid { problems, .. } => Some(Box::new(problems.iter().map(|p| p as &dyn Diagnostic))),
        }
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            Error::Unreadable { .. } => Some(Box::new("the shipped scenarios are in the directory scenarios/")),
            Error::Invalid { .. } => None,
        }
    }
}

/// The sort of a problem, for tests and tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// The file is not TOML.
    Syntax,
    /// A key that nothing reads.
    UnknownKey,
    /// A key that must be there is not.
    Missing,
    /// Text where a table is needed, and the like.
    WrongType,
    /// A quantity without its unit, with a wrong or an ambiguous one.
    Unit,
    /// A word that is not among the choices.
    UnknownWord,
    /// A number beyond its bound.
    OutOfRange,
    /// Values that are right alone and impossible together.
    Impossible,
    /// A name that nothing bears.
    UnknownName,
    /// A file that a scenario names cannot be read.
    File,
}

impl Kind {
    const fn code(self) -> &'static str {
        match self {
            Kind::Syntax => "scenario::syntax",
            Kind::UnknownKey => "scenario::unknown_key",
            Kind::Missing => "scenario::missing",
            Kind::WrongType => "scenario::wrong_type",
            Kind::Unit => "scenario::unit",
            Kind::UnknownWord => "scenario::unknown_word",
            Kind::OutOfRange => "scenario::out_of_range",
            Kind::Impossible => "scenario::impossible",
            Kind::UnknownName => "scenario::unknown_name",
            Kind::File => "scenario::file",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Problem {
    kind: Kind,
    key: String,
    what: String,
    remedy: String,
    source: Arc<NamedSource<String>>,
    span: Range<usize>,
}

impl Problem {
    pub(crate) fn new(
        kind: Kind,
        key: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
        source: Arc<NamedSource<String>>,
        span: Range<usize>,
    ) -> Problem {
        Problem { kind, key: key.into(), what: what.into(), remedy: remedy.into(), source, span }
    }

    /// Its sort.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The key, with its tables: `station[1].mcs`. Empty for an error of syntax.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What would be right.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// The file: the scenario, or one that it names.
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// What stands there now, shortened to one line.
    pub fn found(&self) -> String {
        let text = self.source.inner().get(self.span.clone()).unwrap_or("");
        let line = text.lines().next().unwrap_or("").trim();
        let short: String = line.chars().take(60).collect();
        if short.len() < text.trim().len() { format!("{short} …") } else { short }
    }

    /// Line, from 1.
    pub fn line(&self) -> usize {
        self.before().matches('\n').count() + 1
    }

    /// Column in characters, from 1.
    pub fn column(&self) -> usize {
        let before = self.before();
        before[before.rfind('\n').map_or(0, |newline| newline + 1)..].chars().count() + 1
    }

    /// Where in the file it starts, for sorting.
    pub(crate) fn offset(&self) -> usize {
        self.span.start
    }

    fn before(&self) -> &str {
        let text = self.source.inner();
        text.get(..self.span.start.min(text.len())).unwrap_or(text)
    }

    fn plain(&self) -> String {
        let found = self.found();
        let found = if found.is_empty() { String::new() } else { format!("; found {found}") };
        format!("{}:{}:{}: {self}{found}; {}", self.file(), self.line(), self.column(), self.remedy)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.kind.code()))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.remedy))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = match self.kind {
            Kind::Missing => "nothing here sets it",
            Kind::UnknownKey => "nothing reads this",
            _ => "found here",
        };
        let span = (self.span.start, self.span.len());
        Some(Box::new(std::iter::once(LabeledSpan::new(Some(label.to_owned()), span.0, span.1))))
    }
}
