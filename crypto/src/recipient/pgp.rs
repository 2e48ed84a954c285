//! OpenPGP: not written yet.
