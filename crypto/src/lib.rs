//! Lacre.
