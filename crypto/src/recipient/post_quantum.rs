//! Whether a file's weakest recipient undoes what its post-quantum ones are for.
//!
//! A file is as strong as the weakest way to its data key. Whoever records it today and has a quantum computer later
//! goes through the X25519, RSA or SSH recipient beside the post-quantum one. age refuses such a mixture in one age
//! file; a sealed file has an age file per recipient, so nothing there can refuse it, and it is told instead.

use super::RecipientId;
use super::age::AgeRecipient;

/// Whether `groups` have a post-quantum recipient and can be opened without one nonetheless: by enough groups that have
/// a recipient known to fall to a quantum computer. Keys in a key management service are symmetric and count as
/// neither.
pub fn is_undone(groups: &[Vec<RecipientId>], threshold: Option<usize>) -> bool {
    let strengths: Vec<Vec<Option<bool>>> =
        groups.iter().map(|group| group.iter().map(is_post_quantum).collect()).collect();
    let needed = if groups.len() > 1 { threshold.unwrap_or(groups.len()) } else { 1 };
    let weak = strengths.iter().filter(|group| group.contains(&Some(false))).count();
    strengths.iter().any(|group| group.contains(&Some(true))) && weak >= needed
}

/// Nothing where it is not known.
fn is_post_quantum(id: &RecipientId) -> Option<bool> {
    match id {
        RecipientId::Age(text) => match AgeRecipient::parse(text) {
            Ok(recipient) => Some(recipient.is_post_quantum()),
            // Kinds that this build lacks: plugins say it in their name, SSH keys are none.
            Err(_) if text.starts_with("ssh-") => Some(false),
            Err(_) => None,
        },
        RecipientId::Pgp(_) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::Recipient;
    use crate::recipient::age::AgeIdentity;

    #[test]
    fn a_mixture_is_found_where_it_counts() {
        let classic = || AgeIdentity::generate().recipient().id();
        let quantum = || AgeIdentity::generate_post_quantum().recipient().id();
        let pgp = || RecipientId::Pgp("0".repeat(40));
        let service = || RecipientId::Other { kind: "hckms".to_owned(), name: "x".to_owned() };
        for (groups, threshold, expected) in [
            (vec![vec![quantum(), classic()]], None, true),
            (vec![vec![pgp(), quantum()]], None, true),
            (vec![vec![quantum(), RecipientId::Age("ssh-ed25519 AAAA".to_owned())]], None, true),
            (vec![vec![quantum(), quantum()]], None, false),
            (vec![vec![quantum(), service()]], None, false),
            (vec![vec![classic(), pgp()]], None, false),
            (vec![vec![quantum()], vec![classic()]], None, false),
            (vec![vec![quantum()], vec![classic()], vec![classic()]], Some(2), true),
            (vec![vec![quantum()], vec![quantum()], vec![classic()]], Some(2), false),
        ] {
            assert_eq!(is_undone(&groups, threshold), expected, "{groups:?}");
        }
    }
}
