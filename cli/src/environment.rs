//! Variables of the environment that are read where they count; an empty one is as good as none, as in stock sops.

use std::ffi::OsString;

/// The variable called `name`, if it is set to something that is text.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The variable called `name`, if it is set to anything, such as a path.
pub(crate) fn words(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
