//! Templates give the bytes that the peer gives, and fail where it fails: testdata/templates/.

use std::collections::BTreeMap;

use lacre_crypto::SecretBytes;
use lacre_crypto::object::sealed_secret::MissingKey;
use lacre_crypto::object::template::{
    LIST_ITEMS_MAX, NESTING_MAX, OUTPUT_BYTES_MAX, PATTERN_BYTES_MAX, SOURCE_BYTES_MAX, TEMPLATE_DEPTH_MAX,
    VALUE_DEPTH_MAX, WIDTH_MAX, render,
};
use xtask::template_case;

#[test]
fn every_case_gives_the_bytes_of_the_peer() {
    let mut wrong = Vec::new();
    for case in template_case::all().unwrap() {
        let mut values: BTreeMap<_, _> =
            case.values.into_iter().map(|(key, value)| (key, SecretBytes::new(value))).collect();
        values.insert("out".to_owned(), SecretBytes::from(case.source.as_str()));
        let result = render("out", &case.source, &values, MissingKey::Zero);
        let fits = match (&result, &case.expected) {
            (Ok(bytes), Some(expected)) => bytes.expose_secret() == expected,
            (Err(_), None) => true,
            _ => false,
        };
        if !fits {
            let result = result.map(|bytes| String::from_utf8_lossy(bytes.expose_secret()).into_owned());
            wrong.push(format!("{}: {result:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn plain(source: &str) -> Result<String, String> {
    let values = BTreeMap::from([("pw".to_owned(), SecretBytes::from("CANARY"))]);
    let result = render("t", source, &values, MissingKey::Error).map_err(|error| error.to_string())?;
    Ok(result.as_text().unwrap().to_owned())
}

#[test]
fn a_missing_key_is_an_error_by_default() {
    let error = plain("{{ .nope }}").unwrap_err();
    assert_eq!(error, r#"template: t:1:3: executing "t" at <.nope>: map has no entry for key "nope""#);
    assert_eq!(plain(r#"{{ index . "nope" }}"#).unwrap(), "");
}

#[test]
fn no_error_shows_a_value() {
    for source in [
        "{{ fail .pw }}",
        "{{ .pw | fail }}",
        "{{ .pw.x }}",
        "{{ add1 .pw 1 }}",
        "{{ index (list 1) .pw }}",
        "{{ index (dict) .pw 1 }}",
        "{{ lt .pw 1 }}",
        "{{ range .pw }}{{ end }}",
        "{{ regexFind (print \"(\" .pw) \"x\" }}",
        "{{ semver .pw }}",
        "{{ semverCompare .pw \"1.0.0\" }}",
        "{{ mustFromJson .pw }}",
        "{{ urlParse (print \":\" .pw) }}",
        "{{ template \"x\" .pw }}{{ define \"x\" }}{{ .a.b }}{{ end }}",
        "{{ call .pw }}",
        "{{ if .pw }}{{ (dict .pw 1).x }}{{ end }}",
    ] {
        let error = plain(source).unwrap_err();
        assert!(!error.contains("CANARY"), "{source}: {error}");
    }
    assert!(plain("{{ fail \"set pw\" }}").unwrap_err().ends_with("error calling fail: set pw"));
}

#[test]
fn functions_that_depend_on_more_than_their_arguments_are_refused_by_name() {
    for (call, reason) in [
        ("now", "the clock"),
        ("date \"2006\" now", "the clock"),
        ("uuidv4", "never settle"),
        ("randAlphaNum 5", "never settle"),
        ("genPrivateKey \"rsa\"", "keys"),
        ("bcrypt \"x\"", "keys"),
        ("derivePassword 1 \"long\" \"a\" \"b\" \"c\"", "keys"),
        ("env \"HOME\"", "surroundings"),
        ("getHostByName \"localhost\"", "surroundings"),
    ] {
        let error = plain(&format!("{{{{ {call} }}}}")).unwrap_err();
        let name = call.split(' ').next().unwrap();
        assert!(
            error.contains(&format!("function {name:?} is refused")) && error.contains(reason),
            "{error}"
        );
    }
}

#[test]
fn every_limit_holds_on_both_sides() {
    let nested = |count: usize| format!("{}x{}", "{{ if 1 }}".repeat(count), "{{ end }}".repeat(count));
    let called = |count: usize| {
        format!(
            "{{{{ define \"r\" }}}}{{{{ if . }}}}{{{{ template \"r\" (int (sub . 1)) }}}}{{{{ end }}}}{{{{ end }}}}\
             {{{{ template \"r\" {count} }}}}"
        )
    };
    let deep = |count: usize| {
        format!(
            "{{{{ $l := list }}}}{{{{ range until {count} }}}}{{{{ $l = list $l }}}}{{{{ end }}}}{{{{ $l }}}}"
        )
    };
    for (within, beyond, reason) in [
        ("x".repeat(SOURCE_BYTES_MAX), "x".repeat(SOURCE_BYTES_MAX + 1), "longer than"),
        (
            format!("{{{{ repeat {OUTPUT_BYTES_MAX} \"x\" }}}}"),
            format!("{{{{ repeat {OUTPUT_BYTES_MAX} \"x\" }}}}x"),
            "the result has more than",
        ),
        (nested(NESTING_MAX), nested(NESTING_MAX + 1), "levels of nesting"),
        (called(TEMPLATE_DEPTH_MAX - 1), called(TEMPLATE_DEPTH_MAX), "maximum template depth"),
        (deep(VALUE_DEPTH_MAX), deep(VALUE_DEPTH_MAX + 1), "lists and maps in one another"),
        (
            format!("{{{{ until {LIST_ITEMS_MAX} | len }}}}"),
            format!("{{{{ until {} | len }}}}", LIST_ITEMS_MAX + 1),
            "a list would have more than",
        ),
        (
            format!("{{{{ printf \"%{WIDTH_MAX}d\" 1 }}}}"),
            format!("{{{{ printf \"%{}d\" 1 }}}}", WIDTH_MAX + 1),
            "width or precision",
        ),
        (
            format!("{{{{ regexMatch (repeat {PATTERN_BYTES_MAX} \"a\") \"a\" }}}}"),
            format!("{{{{ regexMatch (repeat {} \"a\") \"a\" }}}}", PATTERN_BYTES_MAX + 1),
            "a regular expression of more than",
        ),
        ("{{ range 1000 }}{{ end }}".to_owned(), "{{ range 100000000 }}{{ end }}".to_owned(), "steps"),
        (
            "{{ $x := repeat 1000000 \"x\" }}{{ range 10 }}{{ $y := upper $x }}{{ end }}".to_owned(),
            "{{ $x := repeat 1000000 \"x\" }}{{ range 100 }}{{ $y := upper $x }}{{ end }}".to_owned(),
            "bytes on its way",
        ),
    ] {
        assert!(plain(&within).is_ok(), "{reason}: {:?}", plain(&within).unwrap_err());
        let error = plain(&beyond).unwrap_err();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn hostile_templates_end_at_a_limit() {
    for source in [
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ $d }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ toJson $d }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ deepCopy $d }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ deepEqual $d $d }}",
        "{{ $l := list 1 }}{{ range until 90 }}{{ $l = list $l $l }}{{ end }}{{ $l }}",
        "{{ $l := list }}{{ range until 50000 }}{{ $l = list $l }}{{ end }}{{ $l }}",
        "{{ repeat 9223372036854775807 \"xx\" }}",
        "{{ indent 9223372036854775807 \"x\" }}",
        "{{ seq 1 1 9223372036854775806 }}",
        "{{ untilStep 0 9223372036854775807 1 }}",
        "{{ regexMatch \"(((a{1,100}){1,100}){1,100})\" \"aaaa\" }}{{ fail \"x\" }}",
        "{{ define \"r\" }}{{ template \"r\" . }}{{ template \"r\" . }}{{ end }}{{ template \"r\" 1 }}",
        "{{ range 9223372036854775807 }}{{ end }}",
        "{{ printf \"%*d\" 9223372036854775807 1 }}",
    ] {
        assert!(plain(source).is_err(), "{source}");
    }
}
