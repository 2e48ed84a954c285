//! What is shipped beside the binary says what the code says. No cluster is needed here.

use anyhow::Result;
use clap::CommandFactory;
use lacre_controller::api::crd;
use lacre_controller::args::Args;
use lacre_controller::error::Reason;
use lacre_controller::{keyring, leader};

const DEFINITION: &str = include_str!("../../deploy/crd.yaml");
const RIGHTS: &str = include_str!("../../deploy/rbac.yaml");
const PAGE: &str = include_str!("../../../docs/controller.md");

#[test]
fn the_definition_is_the_one_made_from_the_types() -> Result<()> {
    let made = yaml_serde::to_string(&crd::encrypted_secret())?;
    assert_eq!(made, DEFINITION, "run: cargo run -p lacre-controller --bin crd > controller/deploy/crd.yaml");
    Ok(())
}

#[test]
fn the_rights_name_what_the_code_names() {
    for name in [keyring::own::PUBLIC_CONFIG_MAP, leader::LEASE] {
        assert!(RIGHTS.contains(&format!("resourceNames: [{name}]")), "{name}");
    }
    for verbs in RIGHTS.lines().filter(|line| line.contains("verbs:")) {
        assert!(
            !verbs.contains("delete") && !verbs.contains('*') && !verbs.contains("impersonate"),
            "{verbs}"
        );
    }
}

#[test]
fn the_page_explains_every_reason_and_no_other() {
    let explained: Vec<_> =
        PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for reason in Reason::ALL {
        assert!(explained.contains(&reason.to_string().as_str()), "{reason} is not explained");
    }
    let known: Vec<_> = Reason::ALL.iter().map(ToString::to_string).collect();
    let reasons = explained.iter().filter(|word| word.starts_with(|first: char| first.is_ascii_uppercase()));
    for word in reasons.filter(|word| !["Synced", "Suspended"].contains(word)) {
        assert!(known.contains(&(*word).to_owned()), "{word} is no reason");
    }
}

#[test]
fn the_page_names_every_flag() {
    for flag in Args::command().get_arguments().filter_map(|argument| argument.get_long()) {
        assert!(PAGE.contains(&format!("`--{flag}`")), "--{flag}");
    }
}
