//! What is logged, and what never is.

use tracing_subscriber::EnvFilter;

/// The Kubernetes client's own log repeats answers that it cannot read, and an answer may be a Secret.
const SILENCED: &str = "kube_client::client=off";

/// The filter for `--log`, whatever it says about the part that must be silent.
///
/// # Errors
/// `text` is no filter.
pub fn filter(text: &str) -> anyhow::Result<EnvFilter> {
    let louder = |part: &&str| part.trim().starts_with("kube_client::client");
    let text: Vec<&str> = text.split(',').filter(|part| !louder(part)).collect();
    Ok(EnvFilter::try_new(text.join(","))?.add_directive(SILENCED.parse()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn answers_that_cannot_be_read_are_not_logged_however_loud_the_log_is() {
        for text in [
            "info",
            "trace",
            "kube_client=trace",
            "info,kube_client::client=warn",
            "kube_client::client::x=trace",
        ] {
            let written = Written::default();
            let writer = written.clone();
            let log = tracing_subscriber::fmt().with_env_filter(filter(text).unwrap());
            tracing::subscriber::with_default(log.with_writer(move || writer.clone()).finish(), || {
                tracing::warn!(target: "kube_client::client", "CANARY");
                tracing::warn!(target: "kube_client::client::x", "CANARY");
                tracing::warn!(target: "kube_client::api", "shown");
            });
            let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert!(!written.contains("CANARY"), "{text}: {written}");
        }
    }
}
