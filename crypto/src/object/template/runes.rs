//! Texts that may hold any bytes, character by character as Go sees them.

/// The characters of `bytes` with their bytes. Every byte that belongs to none is one of its own.
pub(super) fn runes(bytes: &[u8]) -> impl Iterator<Item = (Option<char>, &[u8])> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid();
        let chars = valid
            .char_indices()
            .map(move |(at, next)| (Some(next), &valid.as_bytes()[at..at + next.len_utf8()]));
        chars.chain(chunk.invalid().chunks(1).map(|byte| (None, byte)))
    })
}

/// The characters of `bytes`, with U+FFFD for what is none.
pub(super) fn chars(bytes: &[u8]) -> impl Iterator<Item = char> {
    runes(bytes).map(|(rune, _)| rune.unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Whether Go would print the character as it is.
pub(super) fn is_print(next: char) -> bool {
    // Behind another character the standard library escapes exactly what is not printable; quotes it escapes too.
    let mut pair = String::from("a");
    pair.push(next);
    matches!(next, '"' | '\'' | '\\') || pair.escape_debug().nth(1) == Some(next)
}

/// `bytes` between double quotes, with Go's escapes. `ascii` leaves nothing beyond ASCII as it is.
pub(super) fn quoted(bytes: &[u8], ascii: bool) -> Vec<u8> {
    let mut out = vec![b'"'];
    for (rune, raw) in runes(bytes) {
        match rune {
            Some(next) => escape(&mut out, next, '"', ascii),
            None => out.extend_from_slice(format!("\\x{:02x}", raw.first().copied().unwrap_or(0)).as_bytes()),
        }
    }
    out.push(b'"');
    out
}

/// A character between single quotes.
pub(super) fn quoted_char(next: char, ascii: bool) -> Vec<u8> {
    let mut out = vec![b'\''];
    escape(&mut out, next, '\'', ascii);
    out.push(b'\'');
    out
}

fn escape(out: &mut Vec<u8>, next: char, quote: char, ascii: bool) {
    let simple = match next {
        '\x07' => Some('a'),
        '\x08' => Some('b'),
        '\x0c' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\x0b' => Some('v'),
        '\\' => Some('\\'),
        next if next == quote => Some(next),
        _ => None,
    };
    let shown = match (simple, u32::from(next)) {
        (Some(simple), _) => format!("\\{simple}"),
        (None, _) if is_print(next) && (next.is_ascii() || !ascii) => next.to_string(),
        (None, value @ (0..0x20 | 0x7f)) => format!("\\x{value:02x}"),
        (None, value @ 0..0x1_0000) => format!("\\u{value:04x}"),
        (None, value) => format!("\\U{value:08x}"),
    };
    out.extend_from_slice(shown.as_bytes());
}
