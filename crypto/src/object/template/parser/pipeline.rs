//! What stands within an action: pipelines, their commands, and the terms of these.

use super::super::functions;
use super::super::lexer::TokenKind;
use super::super::literal::{character, number, unquote};
use super::super::node::{Command, Pipe, Term, TermKind};
use super::{ParseFault, Parsed, Parser, shortened};

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Parsed<Pipe> {
        let at = self.peek_word().at;
        let (assigns, variables) = self.declarations(context)?;
        let mut pipe = Pipe { at, assigns, variables, commands: Vec::new() };
        loop {
            let token = self.peek_word();
            match token.kind {
                kind if kind == end => {
                    self.take();
                    self.check(&pipe, context)?;
                    return Ok(pipe);
                }
                TokenKind::Word if is_keyword(token.text) => return Err(self.unexpected(&token, context)),
                TokenKind::Character
                | TokenKind::Complex
                | TokenKind::Dot
                | TokenKind::Field
                | TokenKind::LeftParen
                | TokenKind::Number
                | TokenKind::Quoted
                | TokenKind::Raw
                | TokenKind::Variable
                | TokenKind::Word => {
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return Err(self.unexpected(&token, context)),
            }
        }
    }

    /// `$a :=`, `$a =`, and in a range also `$a, $b :=`.
    fn declarations(&mut self, context: &str) -> Parsed<(bool, Vec<String>)> {
        let mut variables = Vec::new();
        loop {
            let variable = self.peek_word();
            if variable.kind != TokenKind::Variable {
                return Ok((false, variables));
            }
            let start = self.next;
            self.take();
            let next = self.peek_word();
            match next.kind {
                TokenKind::Assign | TokenKind::Declare => {
                    self.take();
                    variables.push(variable.text.to_owned());
                    self.variables.push(variable.text.to_owned());
                    return Ok((next.kind == TokenKind::Assign, variables));
                }
                TokenKind::Char if next.text == "," => {
                    self.take();
                    variables.push(variable.text.to_owned());
                    self.variables.push(variable.text.to_owned());
                    if context != "range" || variables.len() > 1 {
                        return Err(self.fault(format!("too many declarations in {context}")));
                    }
                    let after = self.peek_word().kind;
                    if !matches!(after, TokenKind::Variable | TokenKind::Right | TokenKind::RightParen) {
                        return Err(self.fault("range can only initialize variables"));
                    }
                }
                _ => {
                    self.next = start;
                    return Ok((false, variables));
                }
            }
        }
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return Err(self.fault(format!("missing value for {context}")));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if let Some(
                TermKind::Bool(_)
                | TermKind::Dot
                | TermKind::Nil
                | TermKind::Number(_)
                | TermKind::Text { .. },
            ) = command.terms.first().map(|term| &term.kind)
            {
                return Err(self.fault(format!("non executable command in pipeline stage {}", index + 1)));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<Command> {
        let mut terms = Vec::new();
        loop {
            self.peek_word();
            if let Some(term) = self.operand()? {
                terms.push(term);
            }
            let token = self.peek();
            match token.kind {
                TokenKind::Space => {
                    self.take();
                    continue;
                }
                TokenKind::Right | TokenKind::RightParen => {}
                TokenKind::Pipe => {
                    self.take();
                }
                _ => return Err(self.unexpected(&token, "operand")),
            }
            break;
        }
        if terms.is_empty() { Err(self.fault("empty command")) } else { Ok(Command { terms }) }
    }

    fn operand(&mut self) -> Parsed<Option<Term>> {
        let Some(term) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        while self.peek().kind == TokenKind::Field {
            fields.push(self.take().text[1..].to_owned());
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        let at = term.at;
        let kind = match term.kind {
            TermKind::Field(mut names) => {
                names.extend(fields);
                TermKind::Field(names)
            }
            TermKind::Variable(name, mut names) => {
                names.extend(fields);
                TermKind::Variable(name, names)
            }
            TermKind::Bool(_)
            | TermKind::Dot
            | TermKind::Nil
            | TermKind::Number(_)
            | TermKind::Text { .. } => {
                return Err(self.fault(format!("unexpected . after term {:?}", shortened(&term.to_string()))));
            }
            _ => TermKind::Chain(Box::new(term), fields),
        };
        Ok(Some(Term { at, kind }))
    }

    fn term(&mut self) -> Parsed<Option<Term>> {
        let token = self.peek_word();
        let at = token.at;
        let kind = match token.kind {
            TokenKind::Word => match token.text {
                "true" | "false" => TermKind::Bool(token.text == "true"),
                "nil" => TermKind::Nil,
                word if is_keyword(word) => return Ok(None),
                word => {
                    TermKind::Function(functions::find(word).map_err(|reason| ParseFault { at, reason })?)
                }
            },
            TokenKind::Dot => TermKind::Dot,
            TokenKind::Variable => {
                if !self.variables.iter().any(|known| known == token.text) {
                    return Err(ParseFault { at, reason: format!("undefined variable {:?}", token.text) });
                }
                TermKind::Variable(token.text.to_owned(), Vec::new())
            }
            TokenKind::Field => TermKind::Field(vec![token.text[1..].to_owned()]),
            TokenKind::Character => {
                let malformed = || ParseFault { at, reason: "malformed character constant".to_owned() };
                TermKind::Number(character(token.text).ok_or_else(malformed)?)
            }
            TokenKind::Number | TokenKind::Complex => {
                TermKind::Number(number(token.text).map_err(|reason| ParseFault { at, reason })?)
            }
            TokenKind::Quoted | TokenKind::Raw => {
                let bytes = unquote(token.text)
                    .ok_or_else(|| ParseFault { at, reason: "invalid syntax".to_owned() })?;
                TermKind::Text { source: token.text.to_owned(), bytes }
            }
            TokenKind::LeftParen => {
                self.take();
                self.deeper()?;
                let pipe = self.pipeline("parenthesized pipeline", TokenKind::RightParen)?;
                self.depth -= 1;
                return Ok(Some(Term { at, kind: TermKind::Pipe(pipe) }));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(Term { at, kind }))
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "block" | "break" | "continue" | "define" | "else" | "end" | "if" | "range" | "template" | "with"
    )
}
