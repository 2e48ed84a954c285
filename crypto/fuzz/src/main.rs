//! One target of [`targets`] under LLVM's fuzzer; `LACRE_FUZZ_TARGET` names it. Run by `cargo xtask fuzz`.

#![no_main]

use std::sync::OnceLock;

mod targets;

static TARGET: OnceLock<targets::Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("LACRE_FUZZ_TARGET").expect("LACRE_FUZZ_TARGET names a target");
        targets::ALL.iter().find(|(known, _)| *known == name).expect("there is such a target").1
    });
    target(bytes);
});
