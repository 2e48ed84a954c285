//! Prints a custom resource definition as YAML: `crd encryptedsecrets`, `crd sealedsecrets`.

use std::io::Write;

use anyhow::bail;
use lacre_controller::api::crd;

fn main() -> anyhow::Result<()> {
    let definition = match std::env::args().nth(1).as_deref() {
        Some("encryptedsecrets") => crd::encrypted_secret(),
        Some("sealedsecrets") => crd::sealed_secret(),
        _ => bail!("which one: encryptedsecrets or sealedsecrets?"),
    };
    std::io::stdout().lock().write_all(yaml_serde::to_string(&definition)?.as_bytes())?;
    Ok(())
}
