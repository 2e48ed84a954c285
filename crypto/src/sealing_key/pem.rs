//! PEM as it is found: read leniently, written strictly.
//!
//! Bundles are made by concatenation, by hand and by `openssl`, with text between the blocks, lines of any length and
//! either line end. What is in a block is judged by who asked for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{PEM_BYTES_MAX, SealingKeyError, malformed};
use crate::secret::SecretBytes;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";
/// Length of a line of base64 as every writer of PEM cuts it.
const LINE_BYTES: usize = 64;

/// One block: its label, and its content, which may be a private key.
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    pub(super) content: SecretBytes,
    /// It has the header that says that a passphrase protects the content.
    pub(super) encrypted: bool,
}

/// All blocks of a text in its order.
pub(super) fn blocks(text: &str) -> Result<Vec<Block<'_>>, SealingKeyError> {
    if text.len() > PEM_BYTES_MAX {
        return Err(SealingKeyError::TooLarge);
    }
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some(begin) = begin_of_line(rest) {
        let after = &rest[begin + BEGIN.len()..];
        let Some((label, after)) = after.split_once(DASHES).filter(|(label, _)| !label.contains('\n')) else {
            return Err(malformed("a PEM block", "its first line does not end in -----"));
        };
        let end = format!("-----END {label}-----");
        let Some((body, after)) = after.split_once(&end) else {
            return Err(malformed("a PEM block", format!("{end} is missing")));
        };
        blocks.push(block(label, body)?);
        rest = after;
    }
    Ok(blocks)
}

/// What a text holds, in words, for the message that something else was needed.
pub(super) fn found(blocks: &[Block<'_>]) -> String {
    let mut labels: Vec<_> = blocks.iter().map(|block| block.label).collect();
    labels.dedup();
    match labels.is_empty() {
        true => "and no PEM block at all".to_owned(),
        false => format!("only {}", labels.join(", ")),
    }
}

/// `content` as a block of lines of 64 characters.
pub(super) fn write(label: &str, content: &[u8]) -> String {
    let encoded = Zeroizing::new(STANDARD.encode(content));
    // Reserved once, so that growing leaves no copy of a key behind.
    let lines = encoded.len() / LINE_BYTES + 1;
    let mut text = String::with_capacity(encoded.len() + lines + 2 * (label.len() + 20));
    text.push_str(&format!("{BEGIN}{label}{DASHES}\n"));
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_BYTES));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

fn begin_of_line(text: &str) -> Option<usize> {
    let mut places = text.match_indices(BEGIN).map(|(place, _)| place);
    places.find(|place| *place == 0 || text.as_bytes()[place - 1] == b'\n')
}

fn block<'a>(label: &'a str, body: &str) -> Result<Block<'a>, SealingKeyError> {
    let headers: Vec<_> = body.lines().map(str::trim).filter(|line| line.contains(':')).collect();
    let encrypted = headers.iter().any(|line| line.starts_with("Proc-Type") && line.contains("ENCRYPTED"));
    let mut compact = Zeroizing::new(String::with_capacity(body.len()));
    for line in body.lines().filter(|line| !line.contains(':')) {
        compact.extend(line.chars().filter(|character| !character.is_whitespace()));
    }
    // The content of an encrypted block is never used, and its header's continuation is not base64.
    let content = match encrypted {
        true => Vec::new(),
        false => {
            STANDARD.decode(compact.as_bytes()).map_err(|_| malformed("a PEM block", "it is not base64"))?
        }
    };
    Ok(Block { label, content: SecretBytes::new(content), encrypted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_whatever_stands_around_it() {
        for length in [0, 1, 47, 48, 49, 96, 1000] {
            let content: Vec<u8> = (0..length).map(|number| number as u8).collect();
            let text = write("X Y", &content);
            for text in [
                text.clone(),
                text.replace('\n', "\r\n"),
                format!("subject=x\nfriendlyName: y\n{text}trailing\n"),
                text.replace('\n', "\n  ").replace("\n  -----", "\n-----"),
            ] {
                let read = blocks(&text).unwrap();
                assert_eq!(read.len(), 1, "{text}");
                assert_eq!((read[0].label, read[0].content.expose_secret()), ("X Y", &content[..]));
            }
        }
    }

    #[test]
    fn broken_blocks_are_refused() {
        for text in [
            "-----BEGIN X\n",
            "-----BEGIN X-----\nAAAA\n",
            "-----BEGIN X-----\nAAAA\n-----END Y-----\n",
            "-----BEGIN X-----\nA!AA\n-----END X-----\n",
            "-----BEGIN X-----\nAAA\n-----END X-----\n",
        ] {
            assert!(matches!(blocks(text), Err(SealingKeyError::Malformed { .. })), "{text}");
        }
    }

    #[test]
    fn no_block_is_said_as_such() {
        assert_eq!(found(&blocks("key: value\n").unwrap()), "and no PEM block at all");
    }
}
