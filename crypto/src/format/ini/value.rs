//! A value on its line: where it begins and ends, what it says, and how one is written.

use std::ops::Range;

/// A value, found in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// With its quotes.
    pub(super) place: Range<usize>,
    /// What it says.
    pub(super) value: String,
    /// A comment behind it, up to the end of its line without blanks.
    pub(super) comment: Option<Range<usize>>,
    /// After the line break of its last line.
    pub(super) end: usize,
}

/// Why other readers take a value for something else than it looks like: the place, and the reason with the way out.
pub(super) type Refused = (usize, &'static str);

/// The marks that begin a value which ends at the same mark, in another line if need be.
const MARKS: [&str; 2] = ["\"\"\"", "`"];

/// The value that starts behind the `=` at `start`.
pub(super) fn find(text: &str, start: usize) -> Result<Found, Refused> {
    let end = line_end(text, start);
    let line = &text[start..end];
    let begin = end - line.trim_start().len();
    let rest = &text[begin..end];
    if rest.is_empty() {
        // Behind the blanks, but on this line.
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        let place = start + blanks..start + blanks;
        return Ok(Found { place, value: String::new(), comment: None, end });
    }
    // Three quotes that end the text are a value of their own.
    match MARKS.into_iter().find(|mark| rest.starts_with(mark) && rest != "\"\"\"") {
        Some(mark) => marked(text, begin, mark),
        None => unmarked(text, begin, end),
    }
}

/// After the line break that ends the line of `offset`.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    text[offset..].find('\n').map_or(text.len(), |found| offset + found + 1)
}

/// From a mark to the same mark. Stock readers look for the last one on the first line, and for the last one on the
/// first line that has one after that; what follows it they drop, but for a comment in the second case.
fn marked(text: &str, begin: usize, mark: &'static str) -> Result<Found, Refused> {
    let first = begin + mark.len();
    let mut line = first..line_end(text, first);
    let is_one_line = text[line.clone()].contains(mark);
    let close = loop {
        match text[line.clone()].rfind(mark) {
            Some(found) => break line.start + found,
            None if line.end == text.len() => return Err((begin, "the value's quotes are not closed")),
            None => line = line.end..line_end(text, line.end),
        }
    };
    if text[line.start..close].contains(mark) {
        return Err((
            line.start,
            "the mark that ends a value stands twice in its line: other readers differ",
        ));
    }
    let after = close + mark.len();
    let rest = &text[after..line.end];
    let blank = rest.len() - rest.trim_start().len();
    let comment = match rest.trim() {
        "" => None,
        comment if comment.starts_with(['#', ';']) && !is_one_line && !comment.ends_with('\\') => {
            Some(after + blank..after + blank + comment.len())
        }
        _ => {
            return Err((
                after,
                "other readers drop what follows a quoted value: put it in a line of its own",
            ));
        }
    };
    Ok(Found { place: begin..after, value: text[first..close].to_owned(), comment, end: line.end })
}

fn unmarked(text: &str, begin: usize, end: usize) -> Result<Found, Refused> {
    let rest = text[begin..end].trim_end();
    if rest.ends_with('\\') {
        return Err((
            begin,
            "a backslash at the end joins lines for other readers: put the value in backquotes",
        ));
    }
    let sign = rest.find(['#', ';']);
    let written = rest[..sign.unwrap_or(rest.len())].trim_end();
    let comment = match sign {
        None => None,
        Some(sign) => {
            let is_apart = rest[..sign].ends_with([' ', '\t']);
            if !is_apart || written.starts_with(['"', '\'']) && unquoted(written) == written {
                let reason =
                    "other readers take what follows `#` or `;` for a comment: put the value in backquotes";
                return Err((begin + sign, reason));
            }
            Some(begin + sign..begin + rest.len())
        }
    };
    let place = begin..begin + written.len();
    Ok(Found { place, value: unquoted(written).to_owned(), comment, end })
}

/// Without quotes around it, unless the same quote stands inside as well.
fn unquoted(written: &str) -> &str {
    let inside = |quote: char| {
        let inside = written.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inside.contains(quote)).then_some(inside)
    };
    inside('\'').or_else(|| inside('"')).unwrap_or(written)
}

/// `value` in the first way of writing that reads back as it is.
pub(super) fn written(value: &str) -> String {
    spellings(value).find(|spelling| says(spelling, value)).unwrap_or_else(|| value.to_owned())
}

/// Whether there is one.
pub(super) fn reads_back(value: &str) -> bool {
    spellings(value).any(|spelling| says(&spelling, value))
}

/// Whether stock tools print `value` so that it reads back. They choose the quotes by what stands inside and forget
/// those around it, a backslash at its end, and three quotes in a value of several lines.
pub(crate) fn is_printable(value: &str) -> bool {
    let quote = match value {
        _ if value.contains(['\n', '`']) => "\"\"\"",
        _ if value.contains(['#', ';']) => "`",
        _ if value.trim() != value => "\"",
        _ => "",
    };
    says(&format!("{quote}{value}{quote}"), value)
}

fn spellings(value: &str) -> impl Iterator<Item = String> {
    ["", "\"", "`", "\"\"\"", "'"].into_iter().map(move |quote| format!("{quote}{value}{quote}"))
}

fn says(spelling: &str, value: &str) -> bool {
    let line = format!("{spelling}\n");
    find(&line, 0).is_ok_and(|found| {
        found.value == value && found.comment.is_none() && found.end == line.len() && found.place.start == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<(String, Option<&str>), &'static str> {
        let found = find(text, 0).map_err(|(_, reason)| reason)?;
        Ok((found.value, found.comment.map(|place| &text[place])))
    }

    #[test]
    fn values_are_read_as_stock_readers_do() {
        let cases = [
            (" v \r\n", "v", None),
            ("\n", "", None),
            ("  ", "", None),
            ("\"a b \"\n", "a b ", None),
            ("'x'", "x", None),
            ("\"a\" and \"b\"\n", "\"a\" and \"b\"", None),
            ("it's\n", "it's", None),
            ("`a;b#c`\n", "a;b#c", None),
            ("`a\nb` # c \n", "a\nb", Some("# c")),
            ("\"\"\"a\r\n\"b\"\r\n\"\"\"\r\n", "a\r\n\"b\"\r\n", None),
            ("\"\"\"one\"\"\"\n", "one", None),
            ("\"\"\"", "\"\"\"", None),
            ("v ; c\n", "v", Some("; c")),
            ("\"v\" # c ; d \n", "v", Some("# c ; d")),
        ];
        for (text, expected, comment) in cases {
            assert_eq!(value(text), Ok((expected.to_owned(), comment)), "{text}");
        }
    }

    #[test]
    fn what_stock_readers_cut_is_refused() {
        let cases = [
            ("a;b#c\n", "backquotes"),
            ("#fff\n", "backquotes"),
            ("`", "not closed"),
            ("\"a ;b\"\n", "backquotes"),
            ("'a # b\n", "backquotes"),
            ("a \\\nb\n", "joins lines"),
            ("`a` ; c\n", "drop"),
            ("`a` b\n", "drop"),
            ("`a\nb` c\n", "drop"),
            ("`a\nb` # c \\\n", "drop"),
            ("`a` `b`\n", "twice"),
            ("`a\nb` `\n", "twice"),
            ("`a\nb\n", "not closed"),
            ("\"\"\"a", "not closed"),
        ];
        for (text, reason) in cases {
            let error = value(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn what_stock_tools_print_as_something_else_is_known() {
        for value in ["", "a", " a", "a;b", "a\nb", "a`b", "it's", "\"a\" \"b\"", "\"", "ends in `\""] {
            assert!(is_printable(value), "{value}");
        }
        for value in ["\"a\"", "'a'", "a\\", " a\" ", "a\n\"\"\"b", "\"\"\"a"] {
            assert!(!is_printable(value), "{value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_reads_back(text in "[ a#;=\"'`\\\\\n]{0,8}") {
            let written = written(&text);
            if reads_back(&text) {
                proptest::prop_assert_eq!(find(&format!("{written}\n"), 0).unwrap().value, text);
            } else {
                proptest::prop_assert!(text.contains('`'));
            }
        }
    }
}
