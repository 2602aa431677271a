//! From a file to a validated scenario.

use crate::problem::{Error, Kind, Problem};
use crate::read::{At, Context, Read, Value};
use crate::tables::Tables;
use crate::{Scenario, check, file};
use miette::NamedSource;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl Scenario {
    /// Reads, parses and validates the scenario at `path`. Files that it names are looked for beside it.
    ///
    /// # Errors
    /// [`Error`] if the file cannot be read, or with everything that is wrong in it.
    pub fn load(path: impl AsRef<Path>) -> Result<Scenario, Error> {
        let path = path.as_ref();
        let text = file::text(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        let base_dir = path.parent().unwrap_or(Path::new(""));
        Scenario::parse(&path.display().to_string(), &text, base_dir)
    }

    /// Parses and validates `text`. `name` is the file as errors shall name it; paths in the text are relative to
    /// `base_dir`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong.
    pub fn parse(name: &str, text: &str, base_dir: &Path) -> Result<Scenario, Error> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()).with_language("TOML"));
        let mut cx = Context { base_dir, problems: Vec::new() };
        let stem = Path::new(name).file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        let scenario = document(text, source, &mut cx).and_then(|raw| check::scenario(&stem, raw, &mut cx));
        match scenario {
            Some(scenario) if cx.problems.is_empty() => Ok(Scenario { text: text.to_owned(), ..scenario }),
            _ => {
                debug_assert!(!cx.problems.is_empty(), "a scenario is refused without a reason");
                let mut problems = cx.problems;
                // The files that a scenario names come after it, one after the other.
                problems.sort_by_cached_key(|p| (p.file() != name, p.file().to_owned(), p.offset()));
                Err(Error::Invalid { name: name.to_owned(), problems })
            }
        }
    }
}

/// Messages of what is not TOML at most. The writer of a scenario makes few such errors; a file of another kind has one
/// on every line.
const MOST_ERRORS: usize = 3;

/// The raw tables of a document. What is not TOML is reported, and nothing else then: after an error of syntax the
/// rest of the file may read as something that nobody wrote.
fn document(text: &str, source: Arc<NamedSource<String>>, cx: &mut Context) -> Option<Tables> {
    let (document, mut errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut tell = |what: String, span: Option<Range<usize>>| {
            let remedy = "see https://toml.io; text and values with a unit stand in quotation marks";
            let (source, span) = (Arc::clone(&source), span.unwrap_or(0..0));
            cx.problems.push(Problem::new(Kind::Syntax, "", what, remedy, source, span));
        };
        // Not in the order of the file: values are read after what they stand in.
        errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
        // The last place is worth its own message, unless it stands for more.
        let told = if errors.len() > MOST_ERRORS { MOST_ERRORS - 1 } else { MOST_ERRORS };
        for error in errors.iter().take(told) {
            tell(format!("this is not TOML: {}", error.message()), error.span());
        }
        if let Some(next) = errors.get(told).filter(|_| errors.len() > MOST_ERRORS) {
            let more = errors.len() - told;
            tell(format!("nor are {more} more places from here on: is this a scenario file?"), next.span());
        }
        return None;
    }
    // A missing top-level key has no place of its own: point at the beginning, not at the whole file.
    let root: Value<'_> = Spanned::new(0..0, DeValue::Table(document.into_inner()));
    Tables::read(&root, &At::beginning(source), cx)
}
