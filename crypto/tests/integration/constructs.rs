//! Which constructs the documents hold: each that people write stands in at least three of them.
//!
//! A construct is a pattern over a document's text, so the list cannot claim what is not there.

use std::fs;

use regex::Regex;

use crate::documents::documents;

/// Fewest documents that hold each construct.
const DOCUMENTS_EACH: usize = 3;

/// A line that is long enough to break readers with a fixed buffer.
const LONG_LINE_BYTES: usize = 64 * 1024;

/// Name, ending of the files, pattern.
const CONSTRUCTS: &[(&str, &str, &str)] = &[
    ("literal block", "yaml", r"(?m)[:] \|\s*$"),
    ("literal block that keeps", "yaml", r"(?m)[:] \|\+"),
    ("literal block that strips", "yaml", r"(?m)[:] \|-"),
    ("literal block with a digit", "yaml", r"(?m)[:] \|[-+]?[1-9]"),
    ("folded block", "yaml", r"(?m)[:] >\s*$"),
    ("folded block that keeps", "yaml", r"(?m)[:] >\+"),
    ("folded block that strips", "yaml", r"(?m)[:] >-"),
    ("folded block with a digit", "yaml", r"(?m)[:] >[-+]?[1-9]"),
    ("literal block in a list", "yaml", r"(?m)^ *- \|\s*$"),
    ("literal block in a list that keeps", "yaml", r"(?m)^ *- \|\+"),
    ("literal block in a list that strips", "yaml", r"(?m)^ *- \|-"),
    ("literal block in a list with a digit", "yaml", r"(?m)^ *- \|[-+]?[1-9]"),
    ("folded block in a list", "yaml", r"(?m)^ *- >\s*$"),
    ("folded block in a list that keeps", "yaml", r"(?m)^ *- >\+"),
    ("folded block in a list that strips", "yaml", r"(?m)^ *- >-"),
    ("folded block in a list with a digit", "yaml", r"(?m)^ *- >[-+]?[1-9]"),
    ("flow mapping over lines", "yaml", r"\{[^{}#]*\n[^{}]*\}"),
    ("flow list over lines", "yaml", r"\[[^\[\]#]*\n[^\[\]]*\]"),
    ("anchor", "yaml", r"(?m)[:-] +&\w+"),
    ("alias", "yaml", r"(?m)[:-] +\*\w+ *$"),
    ("merge key", "yaml", r"(?m)^ *<<: (\*|\[)"),
    ("merge key with a list", "yaml", r"<<: \["),
    ("custom tag", "yaml", r"[:-] +!\w"),
    ("core tag", "yaml", r"[:-] +!!(str|int|float|bool|null|binary|seq|map|timestamp)"),
    ("CRLF", "yaml", r"\r\n"),
    ("byte order mark", "yaml", "^\u{feff}"),
    ("no final newline", "yaml", r"[^\n]\z"),
    ("tab", "yaml", r"\t"),
    ("two documents", "yaml", r"(?ms)\A(?:#[^\n]*\n|---[^\n]*\n)?[^-#].*?^---"),
    ("document end", "yaml", r"(?m)^\.\.\."),
    ("empty document", "yaml", r"(?m)^---\n(#.*\n)*(---|\.\.\.|\z)"),
    ("root flow mapping", "yaml", r"\A(---\s+)?\{"),
    ("indented root", "yaml", r"\A(---\n|#.*\n)? +[\w#]"),
    ("comment on top", "yaml", r"\A#"),
    ("comment beside a scalar", "yaml", r"(?m)^ *[\w-]+: [\w]+ +#"),
    ("comment beside a key", "yaml", r"(?m)^ *[\w-]+: +#"),
    ("comment beside a dash", "yaml", r"(?m)^ *- +#"),
    ("comment before an item", "yaml", r"(?m)^ +#.*\n *- "),
    ("comment before a key", "yaml", r"(?m)^ *#.*\n *\w+:"),
    ("comment after the last item", "yaml", r"(?m)^ +- .*\n +#.*\n\w"),
    ("comment beside a block header", "yaml", r"(?m)[|>][-+0-9]* +#"),
    ("comment in a flow collection", "yaml", r"[\[{] *#|,\s*#"),
    ("comment beside a bracket", "yaml", r"(?m)[\]}] +#"),
    ("comment beside an alias", "yaml", r"\*\w+ +#"),
    ("comment beside an anchor", "yaml", r"&\w+ +(\w+ +)?#"),
    ("comment further out", "yaml", r"(?m)^ {4,}\w.*\n {1,3}#"),
    ("comment at the end", "yaml", r"\n#[^\n]*\n?\z"),
    ("comment between documents", "yaml", r"(?m)^#.*\n---|^---\n#|^--- +#"),
    ("blank line", "yaml", r"\n\r?\n"),
    ("decimal", "yaml", r"(?m)[:-] +-?[0-9]+\s*$"),
    ("hexadecimal", "yaml", r"0x[0-9a-fA-F]"),
    ("octal", "yaml", r"(?m)[:,\[-] *(0o[0-7]+|0[0-7]+)\b"),
    ("binary number", "yaml", r"0b[01]"),
    ("underscores", "yaml", r"(?m)[:-] +[0-9]+_[0-9_.]+"),
    ("float", "yaml", r"(?m)[:-] +-?[0-9]*\.[0-9]+\s*$"),
    ("exponent", "yaml", r"(?m)[0-9][eE][-+]?[0-9]+\b"),
    ("infinity or no number", "yaml", r"(?i)\.(inf|nan)\b"),
    ("boolean", "yaml", r"(?m)[:-] +(true|false|True|TRUE)\b"),
    ("null", "yaml", r"(?m)[:-] +(~|null)\s*$"),
    ("absent value", "yaml", r"(?m)^ *\w+:\s*\n\w"),
    ("date", "yaml", r"(?m)[:-] +[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\b"),
    ("empty text", "yaml", r#"[:-] +""\s*\n"#),
    ("word that is no boolean", "yaml", r"(?i)\b(yes|no|on|off)\b"),
    ("double quotes", "yaml", r#": ""#),
    ("single quotes", "yaml", r": '"),
    ("quoted key", "yaml", r#"(?m)^ *["'][^"'\n]*["']:"#),
    ("quotes over lines", "yaml", r#": "[^"\n]*\n[^"]*""#),
    ("plain text over lines", "yaml", r"(?m)^\w+: \w+\n  \w+\n"),
    ("key with a colon", "yaml", r#"(?m)^ *["']?[^"'\s:#]+:[^"'\s:]+["']?: "#),
    ("key with a hash", "yaml", r#"(?m)^ *["']?[^"'\s:]*#[^\n:"']*["']?: "#),
    ("key with a bracket", "yaml", r#"(?m)^ *["']?[^"'\n:#]*\[[^"'\n:]*["']?:"#),
    ("explicit key", "yaml", r"(?m)^ *\? "),
    ("emoji", "yaml", "[\u{1f300}-\u{1faff}]"),
    ("other scripts", "yaml", r"[\p{Cyrillic}\p{Han}\p{Arabic}\p{Latin}&&[^\x00-\x7f]]"),
    ("Helm braces", "yaml", r"\{\{.*\}\}"),
    ("five levels", "yaml", r"(?m)^ {10,}\w+:"),
    ("number", "json", r"[:\[,] *-?[0-9]"),
    ("fraction", "json", r"[0-9]\.[0-9]"),
    ("exponent", "json", r"[0-9][eE][-+]?[0-9]"),
    ("escape", "json", r#"\\["\\/bfnrt]"#),
    ("escaped code point", "json", r"\\u[0-9a-fA-F]{4}"),
    ("pair of surrogates", "json", r"(?i)\\ud83d\\ud[cdef]"),
    ("all on one line", "json", r"\A\{[^\n]{20,}\}\n?\z"),
    ("tabs", "json", r"\t"),
    ("CRLF", "json", r"\r\n"),
    ("no final newline", "json", r"\}\z"),
    ("empty collection", "json", r"\{\}|\[\]"),
    ("literals", "json", r"\b(true|false|null)\b"),
    ("array in an array", "json", r"\[\s*\["),
    ("export", "env", r"(?m)^export\s"),
    ("escaped line feed", "env", r"\\n"),
    ("other backslash", "env", r"\\[^n]"),
    ("carriage return", "env", r"\r"),
    ("comment", "env", r"(?m)^#"),
    ("quotes", "env", r#"="|='"#),
    ("hash in a value", "env", r"(?m)^[^#\n].*#"),
    ("empty value", "env", r"(?m)=$"),
    ("equals in a value", "env", r"(?m)^[^#=\n]+=[^=\n]*="),
    ("other scripts", "env", r"[^\x00-\x7f]"),
    ("keys before any section", "ini", r"\A([;#].*\n)*\w+ *="),
    ("DEFAULT", "ini", r"(?m)^\[DEFAULT\]"),
    ("repeated section", "ini", r"(?s)\[s\].*\n\[s\]|\[a\].*\n\[a\]"),
    ("comment with a semicolon", "ini", r"(?m)^;"),
    ("comment with a hash", "ini", r"(?m)^#"),
    ("comment behind a value", "ini", r"(?m)^\w+ *= *\S+ +[;#]"),
    ("quotes", "ini", r#"= *["'`]"#),
    ("colon", "ini", r"(?m)^[\w ]+:"),
    ("CRLF", "ini", r"\r\n"),
    ("no final newline", "ini", r"[^\n]\z"),
];

#[test]
fn every_construct_stands_in_three_documents() {
    let texts: Vec<(String, String)> = documents()
        .iter()
        .filter_map(|path| Some((path.extension()?.to_str()?.to_owned(), fs::read_to_string(path).ok()?)))
        .collect();
    let count = |ending: &str, pattern: &str| {
        let pattern = Regex::new(pattern).unwrap();
        texts.iter().filter(|(of, text)| of == ending && pattern.is_match(text)).count()
    };
    let rare: Vec<String> = CONSTRUCTS
        .iter()
        .map(|(name, ending, pattern)| (name, ending, count(ending, pattern)))
        .filter(|(_, _, count)| *count < DOCUMENTS_EACH)
        .map(|(name, ending, count)| format!("{ending}: {name}: {count}"))
        .collect();
    let is_long = |text: &str| text.lines().any(|line| line.len() >= LONG_LINE_BYTES);
    assert!(texts.iter().filter(|(_, text)| is_long(text)).count() >= DOCUMENTS_EACH, "long lines");
    assert!(rare.is_empty(), "too rare:\n{}", rare.join("\n"));
}
