//! Prints the custom resource definitions as YAML: `cargo run -p lacre-controller --bin crd > controller/deploy/crd.yaml`.

use std::io::Write;

fn main() -> anyhow::Result<()> {
    let definition = yaml_serde::to_string(&lacre_controller::api::crd::encrypted_secret())?;
    std::io::stdout().lock().write_all(definition.as_bytes())?;
    Ok(())
}
