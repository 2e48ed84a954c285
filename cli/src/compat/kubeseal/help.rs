//! What `kubeseal --help` says here.

use super::flags::{ALL, Flag, Takes};

/// The flags in the form of the tool whose place we take, so that whatever reads its list can read ours.
pub(super) fn text() -> String {
    let lefts: Vec<String> = ALL.iter().map(left).collect();
    let width = lefts.iter().map(String::len).max().unwrap_or_default();
    let lines: Vec<String> =
        ALL.iter().zip(&lefts).map(|(flag, left)| format!("{left:width$}   {}\n", right(flag))).collect();
    format!(
        "Usage of kubeseal:\n{}\nThis is lacre, in the place of kubeseal. Each flag can be given as a variable of the \
         environment, --cert as SEALED_SECRETS_CERT.\n`lacre kube --help` explains the same in words of its own.\n",
        lines.concat()
    )
}

fn left(flag: &Flag) -> String {
    let names = match flag.short {
        Some(short) => format!("  -{short}, --{}", flag.name),
        None => format!("      --{}", flag.name),
    };
    match flag.takes.word() {
        "" => names,
        word => format!("{names} {word}"),
    }
}

fn right(flag: &Flag) -> String {
    match (flag.default, flag.takes) {
        ("", _) => flag.about.to_owned(),
        (default, Takes::Text | Takes::Scope) => format!("{} (default \"{default}\")", flag.about),
        (default, _) => format!("{} (default {default})", flag.about),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_they_are_looked_for() {
        let text = text();
        for line in [
            "      --cert string ",
            "  -f, --secret-file string ",
            "  -v, --v Level ",
            "      --raw   ",
            "      --from-file strings ",
            "      --as-group stringArray ",
        ] {
            assert!(text.lines().any(|candidate| candidate.starts_with(line)), "{line}");
        }
        assert!(text.contains("(default \"sealed-secrets-controller\")") && text.contains("(default 1800)"));
        assert!(!text.contains("--rotate"));
    }

    #[test]
    fn the_list_is_in_the_order_of_names() {
        assert!(ALL.is_sorted_by_key(|flag| flag.name));
    }
}
