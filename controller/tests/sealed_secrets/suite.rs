//! The tests that Sealed Secrets has of itself, unchanged, against our two programs.

use std::path::Path;

use anyhow::Result;
use xtask::peers::sealed_secrets;

use crate::both_ways::Kubeseal;
use crate::site::{HOME, Turn, Whose};

#[test]
fn their_own_tests_pass_with_our_programs() -> Result<()> {
    let kubeseal = Kubeseal::of(Whose::Ours)?;
    let site = Turn::take()?;
    let ours = site.start(Whose::Ours, &[])?;
    site.certificate(&ours)?;
    let controller = Path::new(env!("CARGO_BIN_EXE_lacre-controller"));
    sealed_secrets::suite(&site.cluster, HOME, &kubeseal.program, controller)?.success().map(drop)
}
