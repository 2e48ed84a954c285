//! AWS KMS: not written yet.
