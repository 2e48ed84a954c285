//! What can be told of a sealed file without any key: whether all that should be sealed is, in the exact form, for
//! recipients that can be used. Whether the values open, and whether the seal is right, only a key can tell.

mod problem;

use std::collections::HashMap;

use crate::Timestamp;
use crate::decrypt::SealedFile;
use crate::document::tree::{NodeKind, Style};
use crate::document::{BLOCK_KEY, Document};
use crate::format::{Format, is_yaml_1_1_word};
use crate::object::{self, FLUX_ANNOTATION};
use crate::recipient::age::AgeRecipient;
use crate::recipient::{RecipientId, WrappedKey};
use crate::seal::Profile;
use crate::seal::digest::stored;
use crate::value::{Form, Nonce, Sealed, ValueType};

pub use problem::Problem;

/// How far ahead of the clock a file may say it was written.
const AHEAD_SECONDS_MAX: i64 = 300;

/// Findings of one file that are kept; there are no more of them in a file that was changed by hand.
pub const FINDINGS_MAX: usize = 1000;

/// What was found in one file.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Values that are sealed. Comments do not count here and below.
    pub sealed: usize,
    /// Values that the selector leaves in the clear.
    pub clear: usize,
    /// The first [`FINDINGS_MAX`] of them: lines, counted from 1, and paths.
    pub clear_values: Vec<(usize, String)>,
    /// Values that are null or empty, which are never sealed.
    pub empty: usize,
    /// Whether there is a seal. One that was taken off looks like one that never was.
    pub has_seal: bool,
    /// Whether this is an EncryptedSecret.
    pub is_object: bool,
    /// The line on which the `sops` block begins, counted from 1.
    pub block_line: usize,
    /// What is not as it should be, in the order of the text; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
}

/// One thing that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, counted from 1.
    pub line: usize,
    /// What.
    pub problem: Problem,
}

impl SealedFile {
    /// Looks at everything that needs no key. `now` is the time to compare with.
    pub fn inspect(&self, now: Timestamp) -> Inspection {
        let block = self.document.tree.root_entry(0, BLOCK_KEY).map_or(0, |entry| entry.place.start);
        let mut work =
            Inspecting { file: self, lines: Lines::of(self.text()), block, found: Inspection::default() };
        work.found.has_seal = self.metadata.seal.is_some();
        work.found.is_object = object::profile(&self.document) == Profile::Object;
        work.found.block_line = work.lines.number(block);
        work.values();
        work.nonces();
        work.block_fields(now);
        work.recipients();
        work.cluster_object();
        work.found.findings.sort_by_key(|finding| finding.line);
        work.found
    }
}

/// The lines on which EncryptedSecrets without a `sops` block begin, in a text that may be a stream of manifests. None
/// for a text that cannot be read: templates are not our business.
pub fn plain_objects(text: &str, format: Format) -> Vec<usize> {
    if !matches!(format, Format::Json | Format::Yaml) || !text.contains(object::KIND) {
        return Vec::new();
    }
    let Ok(document) = Document::read(text, format) else { return Vec::new() };
    let says = |part: usize, key: &str, wanted: &str| {
        let entry = document.tree.root_entry(part, key);
        entry.is_some_and(|entry| document.tree.plain(entry.value, false) == *wanted)
    };
    let is_plain = |part: &usize| {
        says(*part, "apiVersion", object::API_VERSION)
            && says(*part, "kind", object::KIND)
            && document.tree.root_entry(*part, BLOCK_KEY).is_none()
    };
    let lines = Lines::of(text);
    let begin = |part: usize| document.tree.root_entry(part, "kind").map_or(0, |entry| entry.place.start);
    (0..document.tree.documents.len()).filter(is_plain).map(|part| lines.number(begin(part))).collect()
}

/// Where lines begin, so that finding the number of one does not count all before it.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset).collect())
    }

    fn number(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

struct Inspecting<'a> {
    file: &'a SealedFile,
    lines: Lines,
    /// Where the `sops` block begins.
    block: usize,
    found: Inspection,
}

impl Inspecting<'_> {
    fn add(&mut self, offset: usize, problem: Problem) {
        if self.found.findings.len() < FINDINGS_MAX {
            self.found.findings.push(Finding { line: self.lines.number(offset), problem });
        }
    }

    fn add_clear(&mut self, index: usize) {
        self.found.clear += 1;
        if self.found.clear_values.len() < FINDINGS_MAX {
            let value = (self.lines.number(self.offset(index)), self.path(index));
            self.found.clear_values.push(value);
        }
    }

    /// Where a leaf stands; a copy by alias has no place of its own.
    fn offset(&self, index: usize) -> usize {
        let document = &self.file.document;
        document.site(&document.leaves[index]).map_or(0, |site| site.inner.start)
    }

    fn path(&self, index: usize) -> String {
        let document = &self.file.document;
        document.paths.shown(document.leaves[index].path)
    }

    /// Compares what the selector says with what is there.
    fn values(&mut self) {
        let document = &self.file.document;
        // A comment that a rule about comments goes by stays in the clear, so a sealed one is of no importance to it.
        let comments = |index: usize| {
            let leaf = &document.leaves[index];
            let text =
                stored(document, index).map_or_else(|| leaf.value.as_text().unwrap_or_default(), |_| "");
            leaf.is_comment().then(|| text.to_owned())
        };
        let selected = self.file.metadata.selector.select(document, &comments);
        let (mut clear_comments, mut first) = (0, 0);
        for (index, selected) in selected.into_iter().enumerate() {
            let leaf = &document.leaves[index];
            let (offset, text) = (self.offset(index), stored(document, index));
            let form = text.map(|text| Sealed::parse(text, Form::Strict));
            match (selected, form) {
                (true, None) if leaf.is_comment() => {
                    first = if clear_comments == 0 { offset } else { first };
                    clear_comments += usize::from(leaf.value.is_sealable());
                }
                (_, None) if !leaf.is_comment() && !leaf.value.is_sealable() => self.found.empty += 1,
                (true, None) => self.add(offset, Problem::Clear(self.path(index))),
                (_, Some(Err(reason))) => {
                    self.add(offset, Problem::BadForm { path: self.path(index), reason });
                }
                (_, Some(Ok(_))) if leaf.is_comment() => {}
                // Stock tools write the comments of a list as items.
                (false, Some(Ok(sealed))) if sealed.kind != ValueType::Comment => {
                    self.add(offset, Problem::ClearSealedForm(self.path(index)));
                }
                (_, Some(Ok(_))) => self.found.sealed += 1,
                (false, None) if leaf.is_comment() => {}
                (false, None) => self.add_clear(index),
            }
        }
        if clear_comments > 0 {
            self.add(first, Problem::ClearComments(clear_comments));
        }
    }

    /// Two different texts under one nonce give away their difference, and the key that authenticates all values.
    fn nonces(&mut self) {
        let document = &self.file.document;
        let mut seen: HashMap<Nonce, (Vec<u8>, usize)> = HashMap::new();
        for index in 0..document.leaves.len() {
            let parsed = stored(document, index).map(|text| Sealed::parse(text, Form::Lax));
            let Some(Ok(sealed)) = parsed else { continue };
            let offset = self.offset(index);
            match seen.get(&sealed.nonce) {
                Some((data, other)) if *data != sealed.data => {
                    let other_line = self.lines.number(*other);
                    self.add(offset, Problem::NonceReused { path: self.path(index), other_line });
                }
                Some(_) => {}
                None => drop(seen.insert(sealed.nonce, (sealed.data, offset))),
            }
        }
    }

    fn block_fields(&mut self, now: Timestamp) {
        let metadata = &self.file.metadata;
        let check =
            |text: &Option<String>| text.as_deref().map(|text| Sealed::parse(text, Form::Strict).err());
        match check(&metadata.mac) {
            Some(None) => {}
            Some(Some(reason)) => self.add(self.block, Problem::BadField { field: "mac", reason }),
            None => self.add(self.block, Problem::BadField { field: "mac", reason: "it is not there" }),
        }
        if let Some(Some(reason)) = check(&metadata.seal) {
            self.add(self.block, Problem::BadField { field: "lacre", reason });
        }
        let written = metadata.last_modified.parse::<Timestamp>();
        if written.is_ok_and(|time| time.as_second() > now.as_second() + AHEAD_SECONDS_MAX) {
            self.add(self.block, Problem::FutureTime);
        }
    }

    fn recipients(&mut self) {
        let wrapped: Vec<&WrappedKey> = self.file.metadata.groups.iter().flatten().collect();
        for key in &wrapped {
            if let Some(reason) = unusable(key) {
                let recipient = key.recipient.clone();
                self.add(self.block, Problem::Recipient { recipient, reason });
            }
        }
        let post_quantum = |key: &&&WrappedKey| matches!(&key.recipient, RecipientId::Age(recipient) if recipient.starts_with("age1pq1"));
        let strong = wrapped.iter().filter(post_quantum).count();
        if strong > 0 && strong < wrapped.len() {
            self.add(self.block, Problem::WeakerRecipient);
        }
    }

    fn cluster_object(&mut self) {
        let document = &self.file.document;
        let says = |key: &str| document.text_at(&[key]).is_some();
        if document.format == Format::Yaml && says("apiVersion") && says("kind") {
            ambiguous_words(self.file.text(), document)
                .into_iter()
                .for_each(|(offset, word)| self.add(offset, Problem::AmbiguousWord(word)));
        }
        if !self.found.is_object {
            return;
        }
        if let Err(error) = object::tree(document) {
            self.add(0, Problem::Object(error.to_string()));
        }
        let metadata = &self.file.metadata;
        let wanted = object::selector();
        if (metadata.selector.kind(), metadata.selector.text()) != (wanted.kind(), wanted.text()) {
            let reason = format!("an EncryptedSecret is sealed by `{wanted}` and nothing else");
            self.add(self.block, Problem::Object(reason));
        }
        if metadata.seal.is_none() {
            self.add(
                self.block,
                Problem::Object("an EncryptedSecret must have a seal, and this has none".into()),
            );
        }
        if document.text_at(&["metadata", "annotations", FLUX_ANNOTATION]) != Some("disabled") {
            self.add(0, Problem::FluxWouldDecrypt);
        }
    }
}

/// Why the entry cannot be used, as far as its text tells.
fn unusable(key: &WrappedKey) -> Option<String> {
    let begins = |mark: &str| key.enc.trim_start().starts_with(mark);
    match &key.recipient {
        _ if key.enc.trim().is_empty() => Some("there is no wrapped key in its entry".to_owned()),
        RecipientId::Age(recipient) => match AgeRecipient::parse(recipient) {
            Err(error) => Some(error.to_string()),
            Ok(_) if !begins("-----BEGIN AGE ENCRYPTED FILE-----") => {
                Some("what stands in its entry was not made by age".to_owned())
            }
            Ok(_) => None,
        },
        RecipientId::Pgp(_) if !begins("-----BEGIN PGP MESSAGE-----") => {
            Some("what stands in its entry is no OpenPGP message".to_owned())
        }
        RecipientId::Other { .. } => Some("this build cannot use that kind of key".to_owned()),
        _ => None,
    }
}

/// Keys and clear values without quotes that kubectl's reader takes for booleans or numbers.
fn ambiguous_words(text: &str, document: &Document) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for node in &document.tree.nodes {
        match &node.kind {
            NodeKind::Map { entries, .. } => {
                let bare = entries.iter().filter(|entry| entry.name == text[entry.place.clone()]);
                let words = bare.filter(|entry| is_yaml_1_1_word(&entry.name));
                found.extend(words.map(|entry| (entry.place.start, entry.name.to_string())));
            }
            NodeKind::Scalar { value, style: Style::Plain { .. } }
                if value.kind() == Some(ValueType::Str) =>
            {
                let word = value.as_text().filter(|word| is_yaml_1_1_word(word));
                found.extend(word.map(|word| (node.inner.start, word.to_owned())));
            }
            _ => {}
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{ManifestOptions, seal_manifest};
    use crate::recipient::age::AgeIdentity;
    use crate::seal::Scope;
    use crate::{EncryptOptions, Groups, SecretText, Selector, SelectorKind, WriteOptions, encrypt};

    const PLAIN: &str = "# c\na: secret\nb: other\nc_unencrypted: 1\nd: null\ne: ''\n";

    fn sealed(plain: &str, selector: Selector, seal: bool) -> String {
        let recipient = AgeIdentity::generate().recipient();
        let options = EncryptOptions {
            groups: Groups::one(vec![&recipient]),
            selector,
            mac_only_encrypted: false,
            bind: None,
            write: WriteOptions { now: Timestamp::now(), seal, allow_plaintext: false },
        };
        encrypt(&SecretText::from(plain), Format::Yaml, &options).unwrap()
    }

    fn inspect(text: &str) -> Inspection {
        SealedFile::read(text, Format::Yaml).unwrap().inspect(Timestamp::now())
    }

    fn said(text: &str) -> Vec<String> {
        let told = |finding: &Finding| format!("{}: {}", finding.line, finding.problem);
        inspect(text).findings.iter().map(told).collect()
    }

    fn line<'a>(text: &'a str, key: &str) -> &'a str {
        text.lines().find(|line| line.starts_with(key)).unwrap()
    }

    #[test]
    fn a_proper_file_is_counted_and_nothing_found() {
        let found = inspect(&sealed(PLAIN, Selector::default(), true));
        assert_eq!(found.findings, []);
        assert_eq!((found.sealed, found.clear, found.empty), (2, 1, 2));
        assert_eq!(found.clear_values, [(4, "c_unencrypted".to_owned())]);
        assert!(found.has_seal && !found.is_object);
        assert_eq!(found.block_line, 7);
        assert!(!inspect(&sealed(PLAIN, Selector::default(), false)).has_seal);
    }

    #[test]
    fn what_is_in_the_clear_and_should_not_be_is_found() {
        let text = sealed(PLAIN, Selector::default(), true);
        assert_eq!(
            said(&text.replace(line(&text, "b: "), "b: hunter2")),
            ["3: `b` should be sealed and is in the clear"]
        );
        let moved = text.replace("c_unencrypted: 1", &format!("c_unencrypted: {}", &line(&text, "a: ")[3..]));
        assert!(said(&moved)[0].starts_with("4: `c_unencrypted` is sealed and should not be"), "{moved}");
        let comment = text.replace("a: ", "# clear\na: ");
        assert_eq!(said(&comment), ["2: a comment is in the clear: anyone may have added it"]);
        assert!(inspect(&comment).findings[0].problem.is_warning());
    }

    #[test]
    fn comments_that_a_rule_goes_by_may_be_in_the_clear() {
        for (kind, plain) in [
            (SelectorKind::EncryptedCommentRegex, "# seal\na: x\n# other\nb: y\n"),
            (SelectorKind::UnencryptedCommentRegex, "# seal\na: x\n# other\nb: y\n"),
        ] {
            let found = inspect(&sealed(plain, Selector::new(kind, "^ seal").unwrap(), true));
            assert_eq!((found.findings.len(), found.sealed, found.clear), (0, 1, 1), "{kind:?}");
        }
    }

    #[test]
    fn the_form_of_sealed_values_is_exact() {
        let text = sealed(PLAIN, Selector::default(), true);
        for (from, to, reason) in [
            ("type:str", "type:wat", "unknown type"),
            (",iv:", ",iv:AAAA", "nonce"),
            ("type:str]", "type:str]x", "follows"),
        ] {
            let bad = line(&text, "a: ").replace(from, to);
            let found = said(&text.replace(line(&text, "a: "), &bad));
            assert!(
                found[0].starts_with("2: `a` is not properly sealed") && found[0].contains(reason),
                "{found:?}"
            );
        }
        let mac = line(&text, "    mac: ");
        assert!(said(&text.replace(mac, "    mac: ENC[AES256_GCM,data:x]"))[0].contains("`mac`"));
        assert!(said(&text.replace(&format!("{mac}\n"), ""))[0].contains("`mac`: it is not there"));
    }

    #[test]
    fn a_nonce_under_two_texts_is_found() {
        let text = sealed(PLAIN, Selector::default(), true);
        let nonce = |line: &str| line.split("iv:").nth(1).unwrap().split(',').next().unwrap().to_owned();
        let (a, b) = (nonce(line(&text, "a: ")), nonce(line(&text, "b: ")));
        assert_eq!(
            said(&text.replace(&b, &a)),
            ["3: `b` is sealed with the nonce of line 2, and differs from it"]
        );
        let same = text.replace(line(&text, "b: "), &format!("b: {}", &line(&text, "a: ")[3..]));
        assert_eq!(said(&same), Vec::<String>::new());
    }

    #[test]
    fn objects_that_nobody_sealed_are_found_in_a_stream() {
        let object = "apiVersion: lacre.dev/v1alpha1\nkind: EncryptedSecret\nspec: {}\n";
        let stream = format!("kind: ConfigMap\n---\n{object}---\n{object}sops: {{}}\n");
        assert_eq!(plain_objects(&stream, Format::Yaml), [4]);
        assert_eq!(plain_objects("kind: EncryptedSecret\n", Format::Yaml), Vec::<usize>::new());
        assert_eq!(plain_objects("{{ kind: EncryptedSecret", Format::Yaml), Vec::<usize>::new());
    }

    #[test]
    fn an_object_is_what_one_must_be() {
        let manifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: x}\n";
        let recipient = AgeIdentity::generate().recipient();
        let options = ManifestOptions {
            namespace: None,
            scope: Scope::Strict,
            clusters: Vec::new(),
            groups: Groups::one(vec![&recipient]),
            keys_from: Vec::new(),
            write: WriteOptions { now: Timestamp::now(), seal: true, allow_plaintext: false },
        };
        let text = seal_manifest(&SecretText::from(manifest), Format::Yaml, options).unwrap();
        let found = inspect(&text);
        assert!(found.is_object && found.findings.is_empty(), "{:?}", found.findings);
        let changed = |from: &str, to: &str| said(&text.replace(from, to)).join("\n");
        assert!(changed(FLUX_ANNOTATION, "other/annotation").contains("Flux would decrypt"));
        assert!(changed("^(data|stringData)$", "^stringData$").contains("and nothing else"));
        assert!(changed("spec:\n", "spec:\n  colour: red\n").contains("colour"));
        let seal = text.lines().find(|line| line.trim().starts_with("lacre: ")).unwrap();
        assert!(changed(&format!("{seal}\n"), "").contains("must have a seal"));
    }

    #[test]
    fn recipients_and_times_of_no_use_are_found() {
        let text = sealed("a: b\n", Selector::default(), true);
        let begin = "-----BEGIN AGE ENCRYPTED FILE-----";
        assert!(said(&text.replace(begin, "xxxx"))[0].contains("was not made by age"));
        assert!(said(&text.replace("recipient: age1", "recipient: age2"))[0].starts_with("2: age age2"));
        let time = line(&text, "    lastmodified: ");
        let later = text.replace(time, "    lastmodified: \"2999-01-01T00:00:00Z\"");
        assert_eq!(said(&later), ["2: the time of the last change is in the future"]);
    }

    #[test]
    fn words_that_kubectl_reads_otherwise_are_found_in_objects() {
        let rule = || Selector::new(SelectorKind::EncryptedRegex, "^(data|stringData)$").unwrap();
        let plain = "apiVersion: v1\nkind: Secret\nmetadata:\n  labels: {tier: on}\nstringData:\n  yes: x\n";
        let text = sealed(plain, rule(), true);
        let found = said(&text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("4: kubectl reads `on`") && found[1].starts_with("6: kubectl reads `yes`")
        );
        let quoted = plain.replace("tier: on", "tier: 'on'").replace("yes:", "'yes':");
        assert_eq!(said(&sealed(&quoted, rule(), true)), Vec::<String>::new());
        assert_eq!(said(&sealed("stringData:\n  yes: x\n", rule(), true)), Vec::<String>::new());
    }
}
