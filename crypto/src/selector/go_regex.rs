//! Patterns mean what Go's RE2 syntax means by them, since that is what stock tools compile.
//!
//! The differences between Go and the `regex` crate that this translates or refuses are listed in docs/format.md.

use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

/// Most bytes that a compiled pattern may take.
pub(crate) const COMPILED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most repetitions that Go allows one counter.
const REPETITIONS_MAX: u32 = 1000;

/// Compiles a pattern written for Go.
///
/// # Errors
/// What is wrong with the pattern, in words.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translator { rest: pattern.chars().peekable(), written: String::new() }.translate()?;
    regex::RegexBuilder::new(&translated)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string().lines().last().unwrap_or("it does not compile").to_owned())
}

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    written: String,
}

impl Translator<'_> {
    fn translate(mut self) -> Result<String, String> {
        let mut repeated = false;
        while let Some(next) = self.rest.next() {
            let mut repeats = false;
            match next {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '*' | '+' | '?' => {
                    repeats = true;
                    self.repetition(next, repeated)?;
                }
                '{' => {
                    repeats = self.counter(repeated)?;
                }
                _ => self.written.push(next),
            }
            repeated = repeats;
        }
        Ok(self.written)
    }

    /// `*`, `+` or `?` with the `?` that makes it lazy. Go takes no operator on an operator.
    fn repetition(&mut self, operator: char, repeated: bool) -> Result<(), String> {
        if repeated {
            return Err("a repetition follows a repetition".to_owned());
        }
        self.written.push(operator);
        self.lazy();
        Ok(())
    }

    fn lazy(&mut self) {
        if self.rest.next_if_eq(&'?').is_some() {
            self.written.push('?');
        }
    }

    /// The name or number in braces behind `\p` and `\x`, which is no counter.
    fn braced(&mut self) {
        if self.rest.peek() != Some(&'{') {
            return;
        }
        for next in self.rest.by_ref() {
            self.written.push(next);
            if next == '}' {
                return;
            }
        }
    }

    /// `{n}`, `{n,}`, `{n,m}`; any other brace stands for itself.
    fn counter(&mut self, repeated: bool) -> Result<bool, String> {
        let ahead: String = self.rest.clone().take_while(|next| *next != '}').take(12).collect();
        let closed = self.rest.clone().nth(ahead.chars().count()) == Some('}');
        let mut bounds = ahead.splitn(2, ',');
        let least = bounds.next().unwrap_or_default();
        let most = bounds.next();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !closed || !is_number(least) || !most.is_none_or(|most| most.is_empty() || is_number(most)) {
            self.written.push_str("\\{");
            return Ok(false);
        }
        let beyond =
            |text: &str| text.parse::<u32>().map_or(!text.is_empty(), |count| count > REPETITIONS_MAX);
        if beyond(least) || most.is_some_and(beyond) {
            return Err(format!("a counter is beyond {REPETITIONS_MAX}"));
        }
        if repeated {
            return Err("a repetition follows a repetition".to_owned());
        }
        self.written.push('{');
        self.written.push_str(&ahead);
        self.written.push('}');
        self.rest.nth(ahead.chars().count());
        self.lazy();
        Ok(true)
    }

    /// A group; of its flags Go knows `i`, `m`, `s` and `U` only.
    fn group(&mut self) -> Result<(), String> {
        self.written.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.written.push('?');
        if matches!(self.rest.peek(), Some('P' | '<')) {
            let look_behind: String = self.rest.clone().take(2).collect();
            return match look_behind.as_str() {
                "<=" | "<!" => Err("look-around is not supported".to_owned()),
                _ => Ok(()),
            };
        }
        for next in self.rest.by_ref() {
            match next {
                'i' | 'm' | 's' | 'U' | '-' => self.written.push(next),
                ':' | ')' => {
                    self.written.push(next);
                    return Ok(());
                }
                '=' | '!' => return Err("look-around is not supported".to_owned()),
                _ => return Err("a group has an unknown flag".to_owned()),
            }
        }
        Err("a group is not closed".to_owned())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(next) = self.rest.next() else { return Err("the pattern ends in a backslash".to_owned()) };
        match next {
            'd' | 's' | 'w' | 'D' | 'S' | 'W' => self.perl(next, in_class),
            'b' | 'B' if !in_class => self.written.push_str(&format!("(?-u:\\{next})")),
            'Q' if !in_class => self.quoted(),
            '0'..='7' => self.octal(next)?,
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => {
                self.written.push('\\');
                self.written.push(next);
            }
            'x' | 'p' | 'P' => {
                self.written.push('\\');
                self.written.push(next);
                self.braced();
            }
            'A' | 'z' if !in_class => {
                self.written.push('\\');
                self.written.push(next);
            }
            _ if next.is_ascii_alphanumeric() || !next.is_ascii() => {
                return Err(format!("the escape \\{next} is not known"));
            }
            _ => self.literal(next),
        }
        Ok(())
    }

    /// The ASCII classes that Go means: its white space lacks the vertical tab.
    fn perl(&mut self, name: char, in_class: bool) {
        let members = match name.to_ascii_lowercase() {
            'd' => "0-9",
            's' => "\\t\\n\\x0C\\r ",
            _ => "0-9A-Za-z_",
        };
        let negation = if name.is_ascii_uppercase() { "^" } else { "" };
        match (in_class, negation) {
            (true, "") => self.written.push_str(members),
            _ => self.written.push_str(&format!("[{negation}{members}]")),
        }
    }

    fn quoted(&mut self) {
        while let Some(next) = self.rest.next() {
            if next == '\\' && self.rest.peek() == Some(&'E') {
                self.rest.next();
                return;
            }
            self.literal(next);
        }
    }

    fn octal(&mut self, first: char) -> Result<(), String> {
        let mut value = first.to_digit(8).unwrap_or_default();
        if first != '0' && !self.rest.peek().is_some_and(|next| ('0'..='7').contains(next)) {
            return Err("back references are not supported".to_owned());
        }
        for _ in 0..2 {
            let Some(digit) = self.rest.next_if(|next| ('0'..='7').contains(next)) else { break };
            value = value * 8 + digit.to_digit(8).unwrap_or_default();
        }
        self.written.push_str(&format!("\\x{{{value:X}}}"));
        Ok(())
    }

    fn literal(&mut self, character: char) {
        if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
            self.written.push('\\');
        }
        self.written.push(character);
    }

    /// A bracketed class. `[`, `&`, `-` and `~` stand for themselves in Go where `regex` sees set operations.
    fn class(&mut self) -> Result<(), String> {
        self.written.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.written.push('^');
        }
        let mut first = true;
        while let Some(next) = self.rest.next() {
            match next {
                ']' if !first => {
                    self.written.push(']');
                    return Ok(());
                }
                '\\' => self.escape(true)?,
                '[' if self.rest.peek() == Some(&':') => self.posix()?,
                '-' => self.written.push_str(self.dash(first)),
                ']' | '[' | '&' | '~' | '^' => self.literal(next),
                _ => self.written.push(next),
            }
            first = false;
        }
        Err("a class is not closed".to_owned())
    }

    /// A dash is a range's only between two members.
    fn dash(&self, first: bool) -> &'static str {
        if first || self.rest.clone().next() == Some(']') { "\\-" } else { "-" }
    }

    fn posix(&mut self) -> Result<(), String> {
        let name: String = self.rest.clone().skip(1).take_while(|next| *next != ':').collect();
        self.written.push_str(&format!("[:{name}:]"));
        let length = name.chars().count() + 2;
        match self.rest.nth(length) {
            Some(']') => Ok(()),
            _ => Err("a named class is not closed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_go_means() {
        let cases: &[(&str, &str, bool)] = &[
            ("^(data|stringData)$", "stringData", true),
            ("^(data|stringData)$", "metadata", false),
            ("\\Qa.b\\E", "a.b", true),
            ("\\Qa.b\\E", "axb", false),
            ("\\07", "\u{7}", true),
            ("[[a]", "[", true),
            ("[a&&b]", "&", true),
            ("[a~~b]", "~", true),
            ("\\<x", "<x", true),
            ("^\\d$", "٣", false),
            ("^\\w+$", "é", false),
            ("^\\S$", "é", true),
            ("^\\s$", "\u{b}", false),
            ("^[\\d_]+$", "1_2", true),
            ("^[^\\d]$", "x", true),
            ("x{2}", "xx", true),
            ("x{,2}", "x{,2}", true),
            ("a{b", "a{b", true),
            ("(?i)PASS", "my_pass", true),
            ("^[a-c-]+$", "a-c", true),
            ("[[:alpha:]]", "x", true),
            ("a\\.b", "a.b", true),
        ];
        for (pattern, text, matches) in cases {
            assert_eq!(compile(pattern).unwrap().is_match(text), *matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        let patterns = [
            "(",
            "a**",
            "x{2}{3}",
            "(?x)a b",
            "a{1,1001}",
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "\\1",
            "a\\",
            "[a",
            "\\y",
            "\\Z",
            "*a",
        ];
        for pattern in patterns {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_compiles_too_large_is_refused() {
        assert!(compile("(((\\pL{100}){100}){100})").is_err());
    }
}
