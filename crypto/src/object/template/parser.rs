//! From tokens to the templates of a source.

use super::NESTING_MAX;
use super::lexer::{Token, TokenKind, tokens};
use super::literal::unquote;
use super::node::{Branch, Node, Templates};

mod pipeline;

/// A fault of the source, and where it is.
pub(super) struct ParseFault {
    pub(super) at: usize,
    pub(super) reason: String,
}

type Parsed<T> = Result<T, ParseFault>;

/// What ends a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Else,
    End,
    Source,
}

/// The templates of `source`, of which `name` is the source itself.
pub(super) fn parse(name: &str, source: &str) -> Parsed<Templates> {
    let mut parser = Parser {
        tokens: tokens(source),
        next: 0,
        variables: vec!["$".to_owned()],
        loops: 0,
        depth: 0,
        templates: Templates::new(),
    };
    let (root, stop) = parser.nodes(true)?;
    if stop != Stop::Source {
        return Err(parser.fault(if stop == Stop::End {
            "unexpected {{end}}"
        } else {
            "unexpected {{else}}"
        }));
    }
    parser.add(name.as_bytes().to_vec(), root)?;
    Ok(parser.templates)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    variables: Vec<String>,
    loops: usize,
    depth: usize,
    templates: Templates,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        // The last token is an end or an error, and nothing goes past it.
        self.tokens[self.next.min(self.tokens.len() - 1)].clone()
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next = (self.next + 1).min(self.tokens.len());
        token
    }

    fn peek_word(&mut self) -> Token<'a> {
        while self.peek().kind == TokenKind::Space {
            self.next += 1;
        }
        self.peek()
    }

    fn take_word(&mut self) -> Token<'a> {
        self.peek_word();
        self.take()
    }

    fn fault(&self, reason: impl Into<String>) -> ParseFault {
        let last = self.tokens[self.next.saturating_sub(1).min(self.tokens.len() - 1)].at;
        ParseFault { at: last, reason: reason.into() }
    }

    fn unexpected(&self, token: &Token<'_>, context: &str) -> ParseFault {
        let reason = match token.kind {
            TokenKind::Error(reason) => reason.to_owned(),
            TokenKind::End => "unexpected EOF".to_owned(),
            _ => format!("unexpected <{}> in {context}", shortened(token.text)),
        };
        ParseFault { at: token.at, reason }
    }

    fn expect_right(&mut self, context: &str) -> Parsed<()> {
        let token = self.take_word();
        if token.kind == TokenKind::Right { Ok(()) } else { Err(self.unexpected(&token, context)) }
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(self.fault(format!("more than {NESTING_MAX} levels of nesting")));
        }
        Ok(())
    }

    fn add(&mut self, name: Vec<u8>, nodes: Vec<Node>) -> Parsed<()> {
        let is_empty = |nodes: &[Node]| {
            nodes.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
        };
        match self.templates.get(&name) {
            Some(known) if !is_empty(known) => {
                if is_empty(&nodes) {
                    return Ok(());
                }
                let shown = String::from_utf8_lossy(&name).into_owned();
                Err(self.fault(format!("template: multiple definition of template {shown:?}")))
            }
            _ => {
                self.templates.insert(name, nodes);
                Ok(())
            }
        }
    }

    /// Nodes up to the end of the source, an `end` or an `else`. Definitions stand only at the top.
    fn nodes(&mut self, top: bool) -> Parsed<(Vec<Node>, Stop)> {
        let mut nodes = Vec::new();
        loop {
            let token = self.take_word();
            match token.kind {
                TokenKind::End if top => return Ok((nodes, Stop::Source)),
                TokenKind::Text => nodes.push(Node::Text(token.text.to_owned())),
                TokenKind::Left => {
                    let word = self.peek_word();
                    let is_word = word.kind == TokenKind::Word;
                    match word.text {
                        "end" if is_word => {
                            self.take();
                            self.expect_right("end")?;
                            return Ok((nodes, Stop::End));
                        }
                        "else" if is_word => {
                            self.take();
                            return Ok((nodes, Stop::Else));
                        }
                        "define" if is_word && top => {
                            self.take();
                            self.definition()?;
                        }
                        _ => nodes.push(self.action(&word)?),
                    }
                }
                _ => return Err(self.unexpected(&token, "input")),
            }
        }
    }

    /// The nodes of a template of its own, with no variable but `$`.
    fn body(&mut self, name: Vec<u8>, context: &str) -> Parsed<()> {
        let variables = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let loops = std::mem::take(&mut self.loops);
        self.deeper()?;
        let (nodes, stop) = self.nodes(false)?;
        self.depth -= 1;
        if stop != Stop::End {
            return Err(self.fault(format!("unexpected {{{{else}}}} in {context}")));
        }
        self.variables = variables;
        self.loops = loops;
        self.add(name, nodes)
    }

    fn definition(&mut self) -> Parsed<()> {
        let name = self.template_name("define clause")?;
        self.expect_right("define clause")?;
        self.body(name, "define clause")
    }

    fn template_name(&mut self, context: &str) -> Parsed<Vec<u8>> {
        let token = self.take_word();
        match token.kind {
            TokenKind::Quoted | TokenKind::Raw => {
                unquote(token.text).ok_or_else(|| self.fault("invalid syntax"))
            }
            _ => Err(self.unexpected(&token, context)),
        }
    }

    fn action(&mut self, word: &Token<'a>) -> Parsed<Node> {
        if word.kind == TokenKind::Word {
            match word.text {
                "block" => {
                    self.take();
                    let at = self.peek_word().at;
                    let name = self.template_name("block clause")?;
                    let pipe = Some(self.pipeline("block clause", TokenKind::Right)?);
                    self.body(name.clone(), "block clause")?;
                    return Ok(Node::Template { at, name, pipe });
                }
                "break" | "continue" => return self.loop_control(word),
                "if" => return self.control("if").map(Node::If),
                "range" => return self.control("range").map(Node::Range),
                "template" => return self.template(),
                "with" => return self.control("with").map(Node::With),
                "define" => return Err(self.unexpected(word, "command")),
                _ => {}
            }
        }
        self.pipeline("command", TokenKind::Right).map(Node::Action)
    }

    fn loop_control(&mut self, word: &Token<'a>) -> Parsed<Node> {
        self.take();
        let shown = format!("{{{{{}}}}}", word.text);
        self.expect_right(&shown)?;
        if self.loops == 0 {
            return Err(self.fault(format!("{shown} outside {{{{range}}}}")));
        }
        Ok(if word.text == "break" { Node::Break } else { Node::Continue })
    }

    fn template(&mut self) -> Parsed<Node> {
        self.take();
        let at = self.peek_word().at;
        let name = self.template_name("template clause")?;
        let pipe = if self.peek_word().kind == TokenKind::Right {
            self.take();
            None
        } else {
            Some(self.pipeline("template clause", TokenKind::Right)?)
        };
        Ok(Node::Template { at, name, pipe })
    }

    fn control(&mut self, context: &'static str) -> Parsed<Branch> {
        let at = self.take_word().at;
        self.deeper()?;
        let known = self.variables.len();
        let pipe = self.pipeline(context, TokenKind::Right)?;
        let in_loop = usize::from(context == "range");
        self.loops += in_loop;
        let (body, stop) = self.nodes(false)?;
        self.loops -= in_loop;
        let mut otherwise = None;
        if stop == Stop::Else {
            let word = self.peek_word();
            if word.kind == TokenKind::Word && word.text == context && context != "range" {
                // `else if` shares the `end` of the first `if`.
                let branch = self.control(context)?;
                let node = if context == "if" { Node::If(branch) } else { Node::With(branch) };
                otherwise = Some(vec![node]);
            } else {
                self.expect_right("else")?;
                let (nodes, stop) = self.nodes(false)?;
                if stop != Stop::End {
                    return Err(self.fault("expected end; found {{else}}"));
                }
                otherwise = Some(nodes);
            }
        }
        self.variables.truncate(known);
        self.depth -= 1;
        Ok(Branch { at, pipe, body, otherwise })
    }
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(20).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}
