//! What the command line of kubeseal and the commands below `lacre kube` share about sealed secrets.
//!
//! [`manifest`] reads objects, [`certificate`] and [`keys`] find what is sealed for and opened with, [`print`] gives
//! an object the form that the tools of Kubernetes print it in, [`unsealed`] makes an object of an opened Secret,
//! [`merge`] changes single items of a file and nothing else. Sealing and opening are verbs of the crypto crate; the cluster is [`crate::cluster`].

pub(crate) mod certificate;
pub(crate) mod keys;
pub(crate) mod manifest;
pub(crate) mod merge;
pub(crate) mod print;
pub(crate) mod unsealed;
mod yaml_1_1;
