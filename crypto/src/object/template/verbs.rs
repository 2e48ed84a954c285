//! `printf`: Go's verbs, flags, widths, precisions and argument numbers.
//!
//! What does not fit a verb is written into the result as Go does, `%!d(string=x)`, and is no error. Pointers have no
//! address here, and floats no binary form.

mod numbers;

use super::context::{Context, Fault};
use super::print::too_deep;
use super::runes::{chars, quoted, runes};
use super::value::Value;
use super::{VALUE_DEPTH_MAX, WIDTH_MAX};

/// One verb with all that stands before it.
#[derive(Clone, Copy, Default)]
struct Spec {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// The text that `format` makes of `arguments`.
pub(super) fn sprintf(context: &mut Context, format: &[u8], arguments: &[Value]) -> Result<Vec<u8>, Fault> {
    let mut printer =
        Printer { context, arguments, next: 0, reordered: false, good_number: true, out: Vec::new() };
    printer.run(format)?;
    Ok(printer.out)
}

struct Printer<'a> {
    context: &'a mut Context,
    arguments: &'a [Value],
    next: usize,
    reordered: bool,
    good_number: bool,
    out: Vec<u8>,
}

impl Printer<'_> {
    fn run(&mut self, format: &[u8]) -> Result<(), Fault> {
        let mut rest = format;
        while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
            self.push(&rest[..at])?;
            rest = self.verb(&rest[at + 1..])?;
        }
        self.push(rest)?;
        if !self.reordered && self.next < self.arguments.len() {
            self.extra()?;
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.context.reserve(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn extra(&mut self) -> Result<(), Fault> {
        self.push(b"%!(EXTRA ")?;
        for (index, value) in self.arguments.iter().enumerate().skip(self.next) {
            if index > self.next {
                self.push(b", ")?;
            }
            if value.is_nothing() {
                self.push(b"<nil>")?;
            } else {
                self.push(value.type_name().as_bytes())?;
                self.push(b"=")?;
                self.value(Spec::default(), 'v', value, 0)?;
            }
        }
        self.push(b")")
    }

    /// Writes what the verb at the start of `rest` says; gives what stands behind it.
    fn verb<'f>(&mut self, rest: &'f [u8]) -> Result<&'f [u8], Fault> {
        self.good_number = true;
        self.reordered = false;
        let mut at = 0;
        let mut spec = flags(rest, &mut at);
        let mut numbered = self.number(rest, &mut at);
        if rest.get(at) == Some(&b'*') {
            at += 1;
            self.star_width(&mut spec)?;
            numbered = false;
        } else if let Some(width) = digits(rest, &mut at)? {
            spec.width = Some(width);
            if numbered {
                self.good_number = false;
            }
        }
        if rest.get(at) == Some(&b'.') {
            at += 1;
            if numbered {
                self.good_number = false;
            }
            numbered = self.number(rest, &mut at);
            if rest.get(at) == Some(&b'*') {
                at += 1;
                numbered = false;
                match self.take_int() {
                    Some(precision) => spec.precision = usize::try_from(precision).ok(),
                    None => self.push(b"%!(BADPREC)")?,
                }
                check_width(spec.precision.unwrap_or(0))?;
            } else {
                spec.precision = Some(digits(rest, &mut at)?.unwrap_or(0));
            }
        }
        if !numbered {
            self.number(rest, &mut at);
        }
        let Some((rune, raw)) = rest.get(at..).and_then(|rest| runes(rest).next()) else {
            self.push(b"%!(NOVERB)")?;
            return Ok(&[]);
        };
        self.apply(spec, rune.unwrap_or(char::REPLACEMENT_CHARACTER))?;
        Ok(&rest[at + raw.len()..])
    }

    fn star_width(&mut self, spec: &mut Spec) -> Result<(), Fault> {
        let Some(width) = self.take_int() else { return self.push(b"%!(BADWIDTH)") };
        if width < 0 {
            spec.minus = true;
            spec.zero = false;
        }
        let width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        check_width(width)?;
        spec.width = Some(width);
        Ok(())
    }

    fn take_int(&mut self) -> Option<i64> {
        let value = match self.arguments.get(self.next)? {
            Value::Byte(value) => i64::from(*value),
            Value::Int(value) | Value::Int64(value) => *value,
            _ => {
                self.next += 1;
                return None;
            }
        };
        self.next += 1;
        Some(value)
    }

    /// `[n]`: the next argument is the n-th.
    fn number(&mut self, rest: &[u8], at: &mut usize) -> bool {
        if rest.get(*at) != Some(&b'[') {
            return false;
        }
        self.reordered = true;
        let Some(length) = rest[*at..].iter().position(|byte| *byte == b']') else {
            self.good_number = false;
            *at += 1;
            return false;
        };
        let inner = &rest[*at + 1..*at + length];
        *at += length + 1;
        let number = std::str::from_utf8(inner).ok().and_then(|number| number.parse::<usize>().ok());
        match number.filter(|number| (1..=self.arguments.len()).contains(number)) {
            Some(number) => {
                self.next = number - 1;
                true
            }
            None => {
                self.good_number = false;
                true
            }
        }
    }

    fn apply(&mut self, spec: Spec, verb: char) -> Result<(), Fault> {
        if verb == '%' {
            return self.push(b"%");
        }
        if !self.good_number {
            return self.push(format!("%!{verb}(BADINDEX)").as_bytes());
        }
        let arguments = self.arguments;
        let Some(value) = arguments.get(self.next) else {
            return self.push(format!("%!{verb}(MISSING)").as_bytes());
        };
        self.next += 1;
        // With `%v` a plus asks for the names of fields, and nothing here has any.
        let spec = Spec { plus: spec.plus && verb != 'v', ..spec };
        match (verb, value) {
            ('T', value) => self.text(Spec { zero: false, ..spec }, 's', value.type_name().as_bytes()),
            ('v', Value::Missing | Value::Nil) => self.padded(spec, b"<nil>"),
            (_, Value::Missing | Value::Nil) => self.push(format!("%!{verb}(<nil>)").as_bytes()),
            _ => self.value(spec, verb, value, 0),
        }
    }

    fn value(&mut self, spec: Spec, verb: char, value: &Value, depth: usize) -> Result<(), Fault> {
        if depth > VALUE_DEPTH_MAX {
            return Err(too_deep());
        }
        self.context.step(1)?;
        let go_source = verb == 'v' && spec.sharp;
        match (value, verb) {
            (Value::Missing | Value::Nil, _) if go_source => self.push(b"interface {}(nil)"),
            (Value::Missing | Value::Nil, _) => self.push(b"<nil>"),
            (Value::Bool(value), 't' | 'v') => self.padded(spec, value.to_string().as_bytes()),
            (Value::Byte(value), 'v') if go_source => self.push(format!("{value:#x}").as_bytes()),
            (Value::Byte(number), _) => self.integer(spec, verb, i128::from(*number), value),
            (Value::Int(number) | Value::Int64(number), _) => {
                self.integer(spec, verb, i128::from(*number), value)
            }
            (Value::Uint64(number), _) => self.integer(spec, verb, i128::from(*number), value),
            (Value::Float(number), 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'v') => {
                self.float(spec, verb, *number)
            }
            (Value::Float(_), 'b' | 'x' | 'X') => Err("a float has no binary form here: use %v".to_owned()),
            (Value::Text(text), 's' | 'v' | 'x' | 'X' | 'q') => {
                let verb = if go_source { 'q' } else { verb };
                let spec = Spec { sharp: spec.sharp && !go_source, ..spec };
                self.text(spec, verb, text.expose_secret())
            }
            (Value::Version(version), 's' | 'v' | 'x' | 'X' | 'q') => {
                let shown = version.to_string();
                self.text(spec, verb, shown.as_bytes())
            }
            (Value::List(_) | Value::Map(_), _) => self.container(spec, verb, value, depth),
            _ => self.misfit(spec, verb, value),
        }
    }

    /// A value that the verb does not fit.
    fn misfit(&mut self, spec: Spec, verb: char, value: &Value) -> Result<(), Fault> {
        self.push(format!("%!{verb}({}=", value.type_name()).as_bytes())?;
        self.value(spec, 'v', value, 0)?;
        self.push(b")")
    }

    fn container(&mut self, spec: Spec, verb: char, value: &Value, depth: usize) -> Result<(), Fault> {
        let go_source = verb == 'v' && spec.sharp;
        let between: &[u8] = if go_source { b", " } else { b" " };
        if go_source {
            self.push(value.type_name().as_bytes())?;
        }
        match value {
            Value::List(list) if go_source && list.is_nil => return self.push(b"(nil)"),
            Value::List(list) => {
                self.push(if go_source { b"{" } else { b"[" })?;
                for (index, item) in list.items.iter().enumerate() {
                    if index > 0 {
                        self.push(between)?;
                    }
                    self.value(spec, verb, item, depth + 1)?;
                }
            }
            Value::Map(map) => {
                self.push(if go_source { b"{" } else { b"map[" })?;
                for (index, (key, value)) in map.copied().iter().enumerate() {
                    if index > 0 {
                        self.push(between)?;
                    }
                    let key = self.context.text(key.bytes())?;
                    self.value(spec, verb, &key, depth + 1)?;
                    self.push(b":")?;
                    self.value(spec, verb, value, depth + 1)?;
                }
            }
            _ => {}
        }
        self.push(if go_source { b"}" } else { b"]" })
    }

    fn padded(&mut self, spec: Spec, bytes: &[u8]) -> Result<(), Fault> {
        let missing = spec.width.unwrap_or(0).saturating_sub(chars(bytes).count());
        let fill = if spec.zero && !spec.minus { b'0' } else { b' ' };
        let padding = vec![fill; missing];
        if spec.minus {
            self.push(bytes)?;
            self.push(&padding)
        } else {
            self.push(&padding)?;
            self.push(bytes)
        }
    }

    fn text(&mut self, spec: Spec, verb: char, bytes: &[u8]) -> Result<(), Fault> {
        let hex = matches!(verb, 'x' | 'X');
        let bytes = match spec.precision {
            Some(precision) if hex => &bytes[..precision.min(bytes.len())],
            Some(precision) => {
                let kept: usize = runes(bytes).take(precision).map(|(_, raw)| raw.len()).sum();
                &bytes[..kept]
            }
            None => bytes,
        };
        self.context.reserve(bytes.len())?;
        let shown = match verb {
            'q' if spec.sharp && can_be_raw(bytes) => [b"`", bytes, b"`"].concat(),
            'q' => quoted(bytes, spec.plus),
            'x' | 'X' => hexadecimal(spec, verb == 'X', bytes),
            _ => return self.padded(spec, bytes),
        };
        self.padded(spec, &shown)
    }
}

fn flags(rest: &[u8], at: &mut usize) -> Spec {
    let mut spec = Spec::default();
    while let Some(flag) = rest.get(*at) {
        match flag {
            b'#' => spec.sharp = true,
            b'0' => spec.zero = true,
            b'+' => spec.plus = true,
            b'-' => spec.minus = true,
            b' ' => spec.space = true,
            _ => break,
        }
        *at += 1;
    }
    spec
}

fn digits(rest: &[u8], at: &mut usize) -> Result<Option<usize>, Fault> {
    let mut value = None;
    while let Some(digit) = rest.get(*at).filter(|digit| digit.is_ascii_digit()) {
        let next = value.unwrap_or(0) * 10 + usize::from(digit - b'0');
        check_width(next)?;
        value = Some(next);
        *at += 1;
    }
    Ok(value)
}

fn check_width(width: usize) -> Result<(), Fault> {
    if width > WIDTH_MAX { Err(format!("a width or precision above {WIDTH_MAX}")) } else { Ok(()) }
}

/// Whether the text can stand between backquotes.
fn can_be_raw(bytes: &[u8]) -> bool {
    runes(bytes).all(|(rune, _)| match rune {
        Some('\t') => true,
        Some('`' | '\u{7f}' | '\u{feff}') | None => false,
        Some(next) => next >= ' ',
    })
}

fn hexadecimal(spec: Spec, upper: bool, bytes: &[u8]) -> Vec<u8> {
    let prefix = if upper { "0X" } else { "0x" };
    let mut shown = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if spec.space && index > 0 {
            shown.push(' ');
        }
        if spec.sharp && (index == 0 || spec.space) {
            shown.push_str(prefix);
        }
        shown.push_str(&if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
    }
    shown.into_bytes()
}
