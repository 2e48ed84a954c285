//! The templates of SealedSecrets: Go's `text/template` with those functions of sprig 3.3 whose result depends on
//! their arguments alone.
//!
//! Values are bytes. Messages have the form of Go's and never show a value. What a template may cost is limited, since
//! whoever may write a SealedSecret may write a template: see the constants. Which values a template sees and what
//! becomes of its result is `sealed_secret`'s.

mod call;
mod context;
mod execute;
mod functions;
mod lexer;
mod literal;
mod node;
mod parser;
mod print;
mod runes;
mod value;
mod verbs;

use std::collections::BTreeMap;

use self::context::Context;
use self::execute::Executor;
use self::value::Key;
use crate::object::sealed_secret::MissingKey;
use crate::secret::SecretBytes;

/// Most bytes of a source.
pub const SOURCE_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of a result: what a Secret can hold.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Most steps of one rendering.
pub const STEPS_MAX: usize = 2_000_000;
/// Most bytes that one rendering makes on its way.
pub const MEMORY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most items of a list, and so of `until` and `seq`.
pub const LIST_ITEMS_MAX: usize = 100_000;
/// Most blocks and parentheses in one another.
pub const NESTING_MAX: usize = 100;
/// Most templates that call one another.
pub const TEMPLATE_DEPTH_MAX: usize = 100;
/// Most containers in one another that are printed, compared, copied or turned into JSON.
pub const VALUE_DEPTH_MAX: usize = 100;
/// Most bytes of a regular expression.
pub const PATTERN_BYTES_MAX: usize = 4096;
/// Widest field and most digits that a `printf` verb may ask for.
pub const WIDTH_MAX: usize = 10_000;

/// What the rendering thread may put on its stack: enough for all levels of nesting at once, in a debug build too.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// A template that does not parse or does not run. The text shows places and names of the source, never a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {0}")]
pub struct TemplateError(String);

/// The text that the template `source`, called `name`, makes of `values`.
///
/// # Errors
/// Where the source is wrong, what of it failed, or which limit it went over.
pub fn render(
    name: &str,
    source: &str,
    values: &BTreeMap<String, SecretBytes>,
    missing: MissingKey,
) -> Result<SecretBytes, TemplateError> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(TemplateError(format!("{name}: longer than {SOURCE_BYTES_MAX} bytes")));
    }
    let work = || render_here(name, source, values, missing);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread =
            thread.map_err(|error| TemplateError(format!("{name}: no thread to render it: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(TemplateError(format!("{name}: the rendering broke off"))))
    })
}

fn render_here(
    name: &str,
    source: &str,
    values: &BTreeMap<String, SecretBytes>,
    missing: MissingKey,
) -> Result<SecretBytes, TemplateError> {
    let templates = parser::parse(name, source)
        .map_err(|fault| TemplateError(format!("{name}:{}: {}", line(source, fault.at).0, fault.reason)))?;
    let mut context = Context::default();
    let mut entries = BTreeMap::new();
    for (key, value) in values {
        let value = context.text(value.expose_secret()).map_err(TemplateError)?;
        entries.insert(Key::new(key.as_bytes()), value);
    }
    let data = context.map(true, entries).map_err(TemplateError)?;
    let mut executor = Executor::new(&templates, context, missing);
    executor.run(name, data).map_err(|fault| {
        let (line, column) = line(source, fault.at);
        let (template, shown, reason) = (fault.template, fault.shown, fault.reason);
        TemplateError(format!("{name}:{line}:{column}: executing {template:?} at <{shown}>: {reason}"))
    })
}

/// The line of a byte of the source, from one, and its column, from zero.
fn line(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before.len() - start)
}
