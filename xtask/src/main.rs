//! Lacre.
fn main() {}
