//! sprig's functions on paths with slashes. Nothing is looked up: they work on the text alone.

use super::{Function, Param, text};
use crate::object::template::value::Value;
use Param::Text;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base", &[Text], |context, arguments| context.text(base(text(arguments, 0)))),
    Function::new("osBase", &[Text], |context, arguments| context.text(base(text(arguments, 0)))),
    Function::new("dir", &[Text], |context, arguments| context.text(directory(text(arguments, 0)))),
    Function::new("osDir", &[Text], |context, arguments| context.text(directory(text(arguments, 0)))),
    Function::new("clean", &[Text], |context, arguments| context.text(clean(text(arguments, 0)))),
    Function::new("osClean", &[Text], |context, arguments| context.text(clean(text(arguments, 0)))),
    Function::new("ext", &[Text], |context, arguments| context.text(extension(text(arguments, 0)))),
    Function::new("osExt", &[Text], |context, arguments| context.text(extension(text(arguments, 0)))),
    Function::new("isAbs", &[Text], |_, arguments| Ok(Value::Bool(text(arguments, 0).starts_with(b"/")))),
    Function::new("osIsAbs", &[Text], |_, arguments| Ok(Value::Bool(text(arguments, 0).starts_with(b"/")))),
];

fn last_slash(path: &[u8]) -> Option<usize> {
    path.iter().rposition(|byte| *byte == b'/')
}

fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let Some(end) = path.iter().rposition(|byte| *byte != b'/') else { return b"/" };
    let path = &path[..=end];
    &path[last_slash(path).map_or(0, |at| at + 1)..]
}

fn directory(path: &[u8]) -> Vec<u8> {
    clean(&path[..last_slash(path).map_or(0, |at| at + 1)])
}

fn extension(path: &[u8]) -> &[u8] {
    let name = &path[last_slash(path).map_or(0, |at| at + 1)..];
    name.iter().rposition(|byte| *byte == b'.').map_or(b"", |at| &name[at..])
}

/// The shortest path that means the same.
fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}
