//! Cuts the source of a template into texts and the words of actions.
//!
//! All tokens are made at once; the first fault ends them with an [`TokenKind::Error`]. What the words mean together is
//! the parser's.

/// One piece of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// Byte offset in the source.
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Assign,
    Char,
    Character,
    Complex,
    Declare,
    Dot,
    End,
    Error(&'static str),
    Field,
    Left,
    LeftParen,
    Number,
    Pipe,
    Quoted,
    Raw,
    Right,
    RightParen,
    Space,
    Text,
    Variable,
    Word,
}

const SPACES: &[char] = &[' ', '\t', '\r', '\n'];

/// The tokens of `source`, with an end or an error as the last.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, at: 0, parens: 0, tokens: Vec::new() };
    if let Err(reason) = lexer.texts() {
        let at = lexer.at.min(source.len());
        lexer.tokens.push(Token { kind: TokenKind::Error(reason), text: "", at });
    } else {
        lexer.tokens.push(Token { kind: TokenKind::End, text: "", at: source.len() });
    }
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    parens: usize,
    tokens: Vec<Token<'a>>,
}

/// Whether `rest` is a blank and a minus sign, which trims what stands to the right of the delimiter behind it.
fn trims_right(rest: &str) -> bool {
    rest.starts_with(SPACES) && rest[1..].starts_with('-')
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn push(&mut self, kind: TokenKind, from: usize) {
        self.tokens.push(Token { kind, text: &self.source[from..self.at], at: from });
    }

    fn texts(&mut self) -> Result<(), &'static str> {
        while let Some(length) = self.rest().find("{{") {
            let from = self.at;
            let inner = &self.source[from + length + 2..];
            let trims = inner.starts_with('-') && inner[1..].starts_with(SPACES);
            let text = &self.source[from..from + length];
            let kept = if trims { text.trim_end_matches(SPACES) } else { text };
            if !kept.is_empty() {
                self.at = from + kept.len();
                self.push(TokenKind::Text, from);
            }
            self.at = from + length + 2;
            let marker = if trims { 2 } else { 0 };
            if self.source[self.at + marker..].starts_with("/*") {
                self.at += marker;
                self.comment()?;
            } else {
                let left = from + length;
                self.push(TokenKind::Left, left);
                self.at += marker;
                self.parens = 0;
                self.action()?;
            }
        }
        if !self.rest().is_empty() {
            let from = self.at;
            self.at = self.source.len();
            self.push(TokenKind::Text, from);
        }
        Ok(())
    }

    fn comment(&mut self) -> Result<(), &'static str> {
        let length = self.rest().get(2..).and_then(|rest| rest.find("*/")).ok_or("unclosed comment")?;
        self.at += length + 4;
        let trims = self.right_delimiter().ok_or("comment ends before closing delimiter")?;
        self.close(trims);
        Ok(())
    }

    /// Whether the right delimiter of an action stands here, and whether it trims.
    fn right_delimiter(&self) -> Option<bool> {
        let rest = self.rest();
        if trims_right(rest) && rest[2..].starts_with("}}") {
            return Some(true);
        }
        rest.starts_with("}}").then_some(false)
    }

    fn close(&mut self, trims: bool) {
        self.at += if trims { 4 } else { 2 };
        if trims {
            self.at += self.rest().len() - self.rest().trim_start_matches(SPACES).len();
        }
    }

    fn action(&mut self) -> Result<(), &'static str> {
        loop {
            if let Some(trims) = self.right_delimiter() {
                if self.parens > 0 {
                    return Err("unclosed left paren");
                }
                let from = self.at + if trims { 2 } else { 0 };
                self.tokens.push(Token { kind: TokenKind::Right, text: "}}", at: from });
                self.close(trims);
                return Ok(());
            }
            self.word()?;
        }
    }

    fn word(&mut self) -> Result<(), &'static str> {
        let from = self.at;
        let next = self.next().ok_or("unclosed action")?;
        let kind = match next {
            next if SPACES.contains(&next) => {
                self.spaces();
                TokenKind::Space
            }
            '=' => TokenKind::Assign,
            ':' if self.next() == Some('=') => TokenKind::Declare,
            ':' => return Err("expected :="),
            '|' => TokenKind::Pipe,
            '"' => self.quoted('"', "unterminated quoted string", TokenKind::Quoted)?,
            '\'' => self.quoted('\'', "unterminated character constant", TokenKind::Character)?,
            '`' => {
                let length = self.rest().find('`').ok_or("unterminated raw quoted string")?;
                self.at += length + 1;
                TokenKind::Raw
            }
            '$' => self.name(TokenKind::Variable, TokenKind::Variable)?,
            '.' if !self.peek().is_some_and(|next| next.is_ascii_digit()) && !self.rest().is_empty() => {
                self.name(TokenKind::Field, TokenKind::Dot)?
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.at = from;
                self.number()?
            }
            next if is_alphanumeric(next) => {
                self.at = from;
                self.name(TokenKind::Word, TokenKind::Word)?
            }
            '(' => {
                self.parens += 1;
                TokenKind::LeftParen
            }
            ')' => {
                self.parens = self.parens.checked_sub(1).ok_or("unexpected right paren")?;
                TokenKind::RightParen
            }
            '!'..='~' => TokenKind::Char,
            _ => return Err("unrecognized character in action"),
        };
        self.push(kind, from);
        Ok(())
    }

    /// The rest of a run of blanks, without the last one where it belongs to a trimming delimiter.
    fn spaces(&mut self) {
        self.at -= 1;
        let start = self.at;
        let length = self.rest().len() - self.rest().trim_start_matches(SPACES).len();
        self.at += length;
        let last = &self.source[self.at - 1..];
        if trims_right(last) && last[2..].starts_with("}}") && self.at - 1 > start {
            self.at -= 1;
        }
    }

    fn quoted(&mut self, end: char, open: &'static str, kind: TokenKind) -> Result<TokenKind, &'static str> {
        loop {
            match self.next() {
                Some('\\') => match self.next() {
                    None | Some('\n') => return Err(open),
                    Some(_) => {}
                },
                None | Some('\n') => return Err(open),
                Some(next) if next == end => return Ok(kind),
                Some(_) => {}
            }
        }
    }

    /// The letters of a name; `bare` when there are none.
    fn name(&mut self, kind: TokenKind, bare: TokenKind) -> Result<TokenKind, &'static str> {
        let from = self.at;
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.at_terminator() {
            return Err("bad character in a name");
        }
        Ok(if from == self.at { bare } else { kind })
    }

    fn at_terminator(&self) -> bool {
        let ends = |next| SPACES.contains(&next) || matches!(next, '.' | ',' | '|' | ':' | ')' | '(');
        self.peek().is_none_or(ends) || self.rest().starts_with("}}")
    }

    fn number(&mut self) -> Result<TokenKind, &'static str> {
        const BAD: &str = "bad number syntax";
        if !self.scan_number() {
            return Err(BAD);
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.source[..self.at].ends_with('i') {
                return Err(BAD);
            }
            return Ok(TokenKind::Complex);
        }
        Ok(TokenKind::Number)
    }

    fn accept(&mut self, of: &str) -> bool {
        let fits = self.peek().is_some_and(|next| of.contains(next));
        if fits {
            self.at += 1;
        }
        fits
    }

    fn accept_all(&mut self, of: &str) {
        while self.accept(of) {}
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEX: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEX;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_all(digits);
        if self.accept(".") {
            self.accept_all(digits);
        }
        if (digits == DECIMAL && self.accept("eE")) || (digits == HEX && self.accept("pP")) {
            self.accept("+-");
            self.accept_all(DECIMAL);
        }
        self.accept("i");
        !self.peek().is_some_and(is_alphanumeric)
    }
}

fn is_alphanumeric(next: char) -> bool {
    next == '_' || next.is_alphabetic() || next.is_numeric()
}
