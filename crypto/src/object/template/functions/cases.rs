//! sprig's functions that change the letters of a text: case, blanks, words.

use std::sync::LazyLock;

use regex::Regex;

use super::{Function, Param, text};
use crate::object::template::context::{Context, Fault};
use crate::object::template::runes::chars;
use crate::object::template::value::Value;
use Param::Text;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("trim", &[Text], |context, arguments| {
        let full = text(arguments, 0);
        let Ok(valid) = std::str::from_utf8(full) else {
            return context.text(full.trim_ascii());
        };
        context.text(valid.trim_matches(is_space))
    }),
    Function::new("upper", &[Text], |context, arguments| mapped(context, arguments, upper)),
    Function::new("lower", &[Text], |context, arguments| mapped(context, arguments, lower)),
    Function::new("title", &[Text], |context, arguments| {
        let mut before = ' ';
        mapped(context, arguments, |next| {
            let shown = if separates(before) { upper(next) } else { next };
            before = next;
            shown
        })
    }),
    Function::new("untitle", &[Text], |context, arguments| {
        let mut starts = true;
        mapped(context, arguments, |next| {
            let shown = if starts && !is_space(next) { lower(next) } else { next };
            starts = is_space(next);
            shown
        })
    }),
    Function::new("swapcase", &[Text], |context, arguments| {
        let mut after_space = true;
        mapped(context, arguments, |next| {
            if next.is_uppercase() {
                after_space = false;
                lower(next)
            } else if next.is_lowercase() {
                after_space = false;
                upper(next)
            } else {
                after_space = is_space(next);
                next
            }
        })
    }),
    Function::new("nospace", &[Text], |context, arguments| {
        let full = text(arguments, 0);
        let kept: String =
            full.iter().map(|byte| char::from(*byte)).filter(|next| !is_space(*next)).collect();
        // The peer takes each byte for a character, but leaves a text without blanks alone.
        if kept.chars().count() == full.len() { context.text(full) } else { context.text(kept) }
    }),
    Function::new("initials", &[Text], |context, arguments| {
        let mut after_space = true;
        let mut out = String::new();
        for next in text(arguments, 0).iter().map(|byte| char::from(*byte)) {
            if is_space(next) {
                after_space = true;
            } else if after_space {
                out.push(next);
                after_space = false;
            }
        }
        context.text(out)
    }),
    Function::new("camelcase", &[Text], |context, arguments| {
        let full: Vec<char> = chars(text(arguments, 0)).collect();
        context.text(pascal(&full))
    }),
    Function::new("snakecase", &[Text], |context, arguments| {
        let full: Vec<char> = chars(text(arguments, 0)).collect();
        context.text(connected(&full, '_'))
    }),
    Function::new("kebabcase", &[Text], |context, arguments| {
        let full: Vec<char> = chars(text(arguments, 0)).collect();
        context.text(connected(&full, '-'))
    }),
];

fn mapped(context: &mut Context, arguments: &[Value], map: impl FnMut(char) -> char) -> Result<Value, Fault> {
    let full = text(arguments, 0);
    context.reserve(full.len())?;
    context.text(chars(full).map(map).collect::<String>())
}

/// The blanks of Go's `unicode.IsSpace`.
pub(super) fn is_space(next: char) -> bool {
    next.is_whitespace()
}

/// The one character that is the capital of `next`; itself where the capital would be more than one.
pub(super) fn upper(next: char) -> char {
    let mut upper = next.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => next,
    }
}

pub(super) fn lower(next: char) -> char {
    next.to_lowercase().next().unwrap_or(next)
}

/// Whether a word may start behind this character.
fn separates(next: char) -> bool {
    match next {
        '_' => false,
        next if next.is_ascii() => !next.is_ascii_alphanumeric(),
        next => !next.is_alphanumeric() && is_space(next),
    }
}

fn is_connector(next: char) -> bool {
    next == '-' || next == '_' || is_space(next)
}

/// Words without connectors between them, each with a capital.
fn pascal(full: &[char]) -> String {
    let mut out = String::new();
    let mut rest = full.iter().copied();
    let mut last = None;
    for next in rest.by_ref() {
        if !is_connector(next) {
            last = Some(next);
            break;
        }
        out.push(next);
    }
    let Some(first) = last else { return out };
    let mut was_upper = first.is_uppercase();
    let mut last = upper(first);
    for next in rest {
        let mut next = next;
        if is_connector(next) && is_connector(last) {
            out.push(last);
            last = next;
            continue;
        }
        if is_connector(last) {
            was_upper = next.is_uppercase();
            next = upper(next);
        } else {
            if was_upper {
                if next.is_uppercase() {
                    next = lower(next);
                } else {
                    was_upper = false;
                }
            }
            out.push(last);
        }
        last = next;
    }
    out.push(last);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Alphabet,
    Connector,
    None,
    Number,
    Other,
    Punctuation,
    Upper,
}

fn is_punctuation(next: char) -> bool {
    static PUNCTUATION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{P}$").ok());
    PUNCTUATION.as_ref().is_some_and(|pattern| pattern.is_match(next.encode_utf8(&mut [0; 4])))
}

/// Whether the character is a letter of a script that knows words by blanks.
fn is_letter(next: char) -> bool {
    let is_han = ('\u{3400}'..='\u{9fcc}').contains(&next) || ('\u{20000}'..='\u{2b81d}').contains(&next);
    next.is_alphabetic() && !is_han
}

fn kind(next: char) -> Word {
    match next {
        next if is_connector(next) => Word::Connector,
        next if is_punctuation(next) => Word::Punctuation,
        next if next.is_uppercase() => Word::Upper,
        next if is_letter(next) => Word::Alphabet,
        next if next.is_numeric() => Word::Number,
        _ => Word::Other,
    }
}

/// The first word of `rest` and what is behind it.
fn next_word(rest: &[char]) -> (Word, &[char], &[char]) {
    let Some(first) = rest.first() else { return (Word::None, &[], &[]) };
    let first_kind = kind(*first);
    let run = |from: usize, fits: &dyn Fn(char) -> bool| {
        rest[from..].iter().position(|next| !fits(*next)).map_or(rest.len(), |at| from + at)
    };
    let is_small = |next: char| is_letter(next) && !next.is_uppercase();
    let end = match first_kind {
        Word::Upper => match rest.get(1) {
            Some(second) if second.is_uppercase() => {
                let end = run(1, &|next| next.is_uppercase());
                // The capital before a small letter starts the next word.
                if rest.get(end).is_some_and(|next| is_letter(*next)) { end - 1 } else { end }
            }
            Some(_) => run(1, &is_small),
            None => 1,
        },
        Word::Alphabet => run(1, &is_small),
        Word::Number => run(1, &|next| next.is_numeric()),
        word => run(1, &|next| {
            kind(next) == word || (word == Word::Other && next.is_uppercase() && !is_letter(next))
        }),
    };
    (first_kind, &rest[..end], &rest[end..])
}

fn push_lower(out: &mut String, word_kind: Word, word: &[char], connector: char) {
    for next in word {
        match word_kind {
            Word::Connector => out.push(connector),
            Word::Upper => out.push(lower(*next)),
            _ => out.push(*next),
        }
    }
}

/// Words in small letters with `connector` between them. A number belongs to the word before it, unless small letters
/// follow.
fn connected(full: &[char], connector: char) -> String {
    let mut out = String::new();
    let (mut word_kind, mut word, mut rest) = next_word(full);
    let joins = |kind: Word| !matches!(kind, Word::Connector | Word::Punctuation);
    while !rest.is_empty() {
        if word_kind != Word::Connector {
            push_lower(&mut out, word_kind, word, connector);
        }
        let (before, last) = (word_kind, word);
        (word_kind, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(word_kind, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, word_kind, word, connector);
                    (word_kind, word, rest) = next_word(rest);
                }
                if word_kind != Word::None && joins(word_kind) {
                    out.push(connector);
                }
            }
            Word::Connector => push_lower(&mut out, before, last, connector),
            Word::Punctuation => {}
            _ if word_kind != Word::Number => {
                if joins(word_kind) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (word_kind, word, rest) = next_word(rest);
                if word_kind != Word::Alphabet {
                    push_lower(&mut out, Word::Number, number, connector);
                    if joins(word_kind) {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                push_lower(&mut out, Word::Number, number, connector);
                while matches!(word_kind, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, word_kind, word, connector);
                    (word_kind, word, rest) = next_word(rest);
                }
                if word_kind != Word::None && joins(word_kind) {
                    out.push(connector);
                }
            }
        }
    }
    push_lower(&mut out, word_kind, word, connector);
    out
}
