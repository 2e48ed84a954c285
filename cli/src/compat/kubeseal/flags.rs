//! The flags of kubeseal: its own, those by which any client of a cluster is told where the cluster is, and those of
//! the library that it logs with.
//!
//! A test compares the table with what the real kubeseal says about itself.

use crate::cluster::controller;

/// A flag of kubeseal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    pub(super) takes: Takes,
    /// What it is when nobody says anything; an empty text for nothing.
    pub(super) default: &'static str,
    /// What it does, in one sentence.
    pub(super) about: &'static str,
}

/// What follows a flag, by the name that `--help` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A level of detail.
    Level,
    /// Texts with commas between them; all count, however often it is typed.
    List,
    /// Levels for single files of source text.
    ModuleSpec,
    /// Nothing, or `=true` and `=false`.
    Nothing,
    /// A whole number that is not negative.
    Number,
    /// One of the three scopes.
    Scope,
    /// A severity, as a word or its number.
    Severity,
    /// One text; the last one counts.
    Text,
    /// One text each time; all count.
    Texts,
    /// A line of source text.
    TraceLocation,
}

impl Takes {
    /// The word that stands for the value.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Level => "Level",
            Self::List => "strings",
            Self::ModuleSpec => "moduleSpec",
            Self::Nothing => "",
            Self::Number => "uint",
            Self::Scope | Self::Text => "string",
            Self::Severity => "severity",
            Self::Texts => "stringArray",
            Self::TraceLocation => "traceLocation",
        }
    }
}

const fn flag(
    name: &'static str,
    short: Option<char>,
    takes: Takes,
    default: &'static str,
    about: &'static str,
) -> Flag {
    Flag { name, short, takes, default, about }
}

const fn switch(name: &'static str, about: &'static str) -> Flag {
    flag(name, None, Takes::Nothing, "", about)
}

const fn text(name: &'static str, about: &'static str) -> Flag {
    flag(name, None, Takes::Text, "", about)
}

/// All flags that `--help` lists, in its order.
pub(super) const ALL: &[Flag] = &[
    switch("add_dir_header", "Understood and without effect: nothing is logged here"),
    switch("allow-empty-data", "Seal a Secret without any value, too"),
    switch("alsologtostderr", "Understood and without effect: nothing is logged here"),
    flag(
        "alsologtostderrthreshold",
        None,
        Takes::Severity,
        "",
        "Understood and without effect: nothing is logged here",
    ),
    text("as", "Speak to the cluster as this user"),
    flag(
        "as-group",
        None,
        Takes::Texts,
        "",
        "Speak to the cluster as a member of this group; may be repeated",
    ),
    text("as-uid", "Speak to the cluster as the user with this UID"),
    text("cert", "Seal for the certificate in this file or behind this URL, without asking a cluster"),
    text("certificate-authority", "File with the certificates by which the cluster is recognised"),
    text("client-certificate", "File with a certificate to log in with"),
    text("client-key", "File with the key of that certificate"),
    text("cluster", "Use this cluster of the kubeconfig"),
    text("context", "Use this context of the kubeconfig"),
    flag("controller-name", None, Takes::Text, controller::DEFAULT_NAME, "Name of the controller's Service"),
    flag(
        "controller-namespace",
        None,
        Takes::Text,
        controller::DEFAULT_NAMESPACE,
        "Namespace of the controller",
    ),
    switch("disable-compression", "Have the cluster send its answers uncompressed"),
    switch("fetch-cert", "Print the certificate to seal for, for a later --cert"),
    flag("format", Some('o'), Takes::Text, "json", "Print as json or yaml"),
    flag(
        "from-file",
        None,
        Takes::List,
        "",
        "With --raw: seal the content of this file, PATH or KEY=PATH, instead of standard input",
    ),
    switch("help", "Print this"),
    switch(
        "insecure-skip-tls-verify",
        "Believe whoever answers to be the cluster; never do this with secrets",
    ),
    text("kubeconfig", "Use this kubeconfig alone"),
    switch("legacy_stderr_threshold_behavior", "Understood and without effect: nothing is logged here")
        .by_default("true"),
    flag(
        "log_backtrace_at",
        None,
        Takes::TraceLocation,
        ":0",
        "Understood and without effect: nothing is logged here",
    ),
    text("log_dir", "Understood and without effect: nothing is logged here"),
    text("log_file", "Understood and without effect: nothing is logged here"),
    flag(
        "log_file_max_size",
        None,
        Takes::Number,
        "1800",
        "Understood and without effect: nothing is logged here",
    ),
    switch("logtostderr", "Understood and without effect: nothing is logged here").by_default("true"),
    text("merge-into", "Put the sealed items into this SealedSecret file, and leave the rest of it as it is"),
    text("name", "Name of the SealedSecret; needed with --raw unless the scope is wider than strict"),
    flag("namespace", Some('n'), Takes::Text, "", "Namespace of what names none"),
    switch("one_output", "Understood and without effect: nothing is logged here"),
    text("password", "Password to log in to the cluster with"),
    text("proxy-url", "Reach the cluster through this proxy"),
    switch("raw", "Seal one value instead of a Secret, and print it"),
    switch("re-encrypt", "Have the cluster seal a SealedSecret again for its newest key"),
    flag(
        "recovery-private-key",
        None,
        Takes::List,
        "",
        "Files with the keys for --recovery-unseal: PEM, or backups of the controller's Secrets",
    ),
    switch(
        "recovery-unseal",
        "Open a SealedSecret with the keys of --recovery-private-key, without a cluster",
    ),
    flag(
        "request-timeout",
        None,
        Takes::Text,
        "0",
        "Longest time for one request, as in 30s or 2m; 0 for no limit",
    ),
    flag(
        "scope",
        None,
        Takes::Scope,
        "strict",
        "Where it may be opened: strict, namespace-wide or cluster-wide; without it the annotations of the Secret say so",
    ),
    flag("sealed-secret-file", Some('w'), Takes::Text, "", "Write to this file"),
    flag("secret-file", Some('f'), Takes::Text, "", "Read this file"),
    text("server", "Address of the cluster's API server"),
    switch("skip_headers", "Understood and without effect: nothing is logged here"),
    switch("skip_log_headers", "Understood and without effect: nothing is logged here"),
    flag(
        "stderrthreshold",
        None,
        Takes::Severity,
        "2",
        "Understood and without effect: nothing is logged here",
    ),
    text("tls-server-name", "Name that the cluster's certificate must be for"),
    text("token", "Token to log in to the cluster with"),
    text("user", "Use this user of the kubeconfig"),
    text("username", "User to log in to the cluster as"),
    flag("v", Some('v'), Takes::Level, "", "Understood and without effect: nothing is logged here"),
    switch("validate", "Have the cluster tell whether it can open a SealedSecret"),
    switch("version", "Print the version"),
    flag("vmodule", None, Takes::ModuleSpec, "", "Understood and without effect: nothing is logged here"),
];

/// Understood, listed nowhere: the older name of `--re-encrypt`.
pub(super) const ROTATE: Flag = switch("rotate", "The older name of --re-encrypt");

impl Flag {
    const fn by_default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// The flag called `name`.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        static HIDDEN: Flag = ROTATE;
        ALL.iter().find(|flag| flag.name == name).or_else(|| (name == HIDDEN.name).then_some(&HIDDEN))
    }

    /// The flag with this letter.
    pub(super) fn lettered(letter: char) -> Option<&'static Self> {
        ALL.iter().find(|flag| flag.short == Some(letter))
    }

    /// The variable of the environment that stands for it.
    pub(super) fn variable(&self) -> String {
        format!("SEALED_SECRETS_{}", self.name.to_uppercase().replace('-', "_"))
    }
}
