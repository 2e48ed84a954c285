//! Whole numbers and floats under their verbs.

use super::super::context::Fault;
use super::super::print::{float_general, not_finite};
use super::super::runes::{is_print, quoted_char};
use super::super::value::Value;
use super::{Printer, Spec};

impl Printer<'_> {
    pub(super) fn integer(
        &mut self,
        spec: Spec,
        verb: char,
        number: i128,
        value: &Value,
    ) -> Result<(), Fault> {
        let magnitude = number.unsigned_abs();
        let digits = match verb {
            'v' | 'd' => magnitude.to_string(),
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'c' | 'q' => {
                let next = u32::try_from(number)
                    .ok()
                    .and_then(char::from_u32)
                    .unwrap_or(char::REPLACEMENT_CHARACTER);
                let shown = match verb {
                    'q' => quoted_char(next, spec.plus),
                    _ => next.to_string().into_bytes(),
                };
                return self.padded(spec, &shown);
            }
            'U' => return self.unicode(spec, number),
            _ => return self.misfit(spec, verb, value),
        };
        let signed = number < 0 || spec.plus || spec.space;
        let least = match (spec.precision, spec.width) {
            (Some(0), _) if number == 0 => return self.padded(Spec { zero: false, ..spec }, b""),
            (Some(precision), _) => precision,
            (None, Some(width)) if spec.zero && !spec.minus => width.saturating_sub(usize::from(signed)),
            _ => 0,
        };
        let mut shown = String::new();
        if number < 0 {
            shown.push('-');
        } else if spec.plus {
            shown.push('+');
        } else if spec.space {
            shown.push(' ');
        }
        shown.push_str(match (verb, spec.sharp) {
            ('b', true) => "0b",
            ('o', true) if !digits.starts_with('0') && digits.len() >= least => "0",
            ('x', true) => "0x",
            ('X', true) => "0X",
            ('O', _) => "0o",
            _ => "",
        });
        shown.push_str(&"0".repeat(least.saturating_sub(digits.len())));
        shown.push_str(&digits);
        self.padded(Spec { zero: false, ..spec }, shown.as_bytes())
    }

    fn unicode(&mut self, spec: Spec, number: i128) -> Result<(), Fault> {
        let value = u64::try_from(number)
            .unwrap_or_else(|_| number.unsigned_abs().try_into().map_or(0, u64::wrapping_neg));
        let least = spec.precision.unwrap_or(4).max(4);
        let mut shown = format!("U+{value:0least$X}");
        if let (true, Some(next)) = (spec.sharp, u32::try_from(number).ok().and_then(char::from_u32))
            && is_print(next)
        {
            shown.push_str(&format!(" '{next}'"));
        }
        self.padded(Spec { zero: false, ..spec }, shown.as_bytes())
    }

    pub(super) fn float(&mut self, spec: Spec, verb: char, value: f64) -> Result<(), Fault> {
        let mut shown = match verb {
            _ if !value.is_finite() => not_finite(value),
            'e' | 'E' => exponential(value, spec.precision.unwrap_or(6)),
            'f' | 'F' => format!("{value:.*}", spec.precision.unwrap_or(6)),
            _ if spec.sharp && verb != 'v' => float_general(value, Some(spec.precision.unwrap_or(6)), true),
            _ => float_general(value, spec.precision, false),
        };
        if matches!(verb, 'E' | 'G') {
            shown = shown.to_uppercase();
        }
        let negative = shown.starts_with('-');
        let body = shown.trim_start_matches(['-', '+']).to_owned();
        let sign = if negative {
            "-"
        } else if spec.plus || (!value.is_finite() && !value.is_nan()) {
            "+"
        } else if spec.space {
            " "
        } else {
            ""
        };
        let zero = spec.zero && !spec.minus && value.is_finite();
        let fill = if zero { spec.width.unwrap_or(0).saturating_sub(sign.len() + body.len()) } else { 0 };
        let shown = format!("{sign}{}{body}", "0".repeat(fill));
        self.padded(Spec { zero: false, ..spec }, shown.as_bytes())
    }
}

fn exponential(value: f64, precision: usize) -> String {
    let shown = format!("{value:.precision$e}");
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}
