//! Bare timestamps: which plain scalars are one, and their one form on the wire, RFC 3339 with as many fraction
//! digits as needed.

/// The wire form of a scalar that stock tools take for a timestamp; nothing for any other text.
///
/// Accepted are a date of four, one or two, and one or two digits, alone or followed by `T`, `t` or a space and a
/// time; only after `T` or `t` comes an offset, and there it must.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let mut rest = Cursor(text.as_bytes());
    let year = rest.number(4, 4)?;
    rest.eat(b'-')?;
    let month = rest.number(1, 2)?;
    rest.eat(b'-')?;
    let day = rest.number(1, 2)?;
    if !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if rest.0.is_empty() {
        return Some(format!("{date}T00:00:00Z"));
    }
    let with_offset = match rest.next()? {
        b'T' | b't' => true,
        b' ' => false,
        _ => return None,
    };
    let time = rest.time()?;
    let offset = if with_offset { rest.offset()? } else { "Z".to_owned() };
    rest.0.is_empty().then(|| format!("{date}T{time}{offset}"))
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let digits = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        std::str::from_utf8(number).ok()?.parse().ok()
    }

    fn time(&mut self) -> Option<String> {
        let hour = self.number(1, 2)?;
        self.eat(b':')?;
        let minute = self.number(1, 2)?;
        self.eat(b':')?;
        let second = self.number(1, 2)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        Some(format!("{hour:02}:{minute:02}:{second:02}{}", self.fraction()?))
    }

    /// Digits after a point, at most nine of them kept, without trailing zeros.
    fn fraction(&mut self) -> Option<String> {
        if !matches!(self.0, [b'.' | b',', digit, ..] if digit.is_ascii_digit()) {
            return Some(String::new());
        }
        let digits = self.0[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let kept = std::str::from_utf8(&self.0[1..1 + digits.min(9)]).ok()?.trim_end_matches('0').to_owned();
        self.0 = &self.0[1 + digits..];
        Some(if kept.is_empty() { kept } else { format!(".{kept}") })
    }

    fn offset(&mut self) -> Option<String> {
        let sign = match self.next()? {
            b'Z' => return Some("Z".to_owned()),
            b'+' => '+',
            b'-' => '-',
            _ => return None,
        };
        let hours = self.number(2, 2)?;
        self.eat(b':')?;
        let minutes = self.number(2, 2)?;
        if hours > 24 || minutes > 60 {
            return None;
        }
        Some(if hours == 0 && minutes == 0 {
            "Z".to_owned()
        } else {
            format!("{sign}{hours:02}:{minutes:02}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn timestamps_come_into_one_form() {
        let cases = [
            ("2001-1-1", "2001-01-01T00:00:00Z"),
            ("2001-12-14t21:59:43.10-05:00", "2001-12-14T21:59:43.1-05:00"),
            ("2020-01-02T03:04:05.5+02:00", "2020-01-02T03:04:05.5+02:00"),
            ("2020-01-02T3:4:5Z", "2020-01-02T03:04:05Z"),
            ("2020-01-02T03:04:05+00:00", "2020-01-02T03:04:05Z"),
            ("2020-01-02 03:04:05.123456789", "2020-01-02T03:04:05.123456789Z"),
        ];
        for (text, form) in cases {
            assert_eq!(canonical(text).as_deref(), Some(form), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_timestamps() {
        let texts = [
            "2001",
            "2001-",
            "2001-1",
            "201-01-01",
            "20010-01-01",
            "2001-02-29",
            "2001-00-01",
            "2001-01-00",
            "2001-01-01T",
            "2001-01-01T03:04",
            "2001-01-01T03:04:05",
            "2001-01-01 03:04:05Z",
            "2001-01-01T24:00:00Z",
            "2001-01-01x",
            "2001-01-01T03:04:05Zx",
        ];
        for text in texts {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
