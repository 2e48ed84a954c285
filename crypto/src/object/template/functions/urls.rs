//! sprig's URLs, taken apart and put together as Go does.

use std::collections::BTreeMap;

use super::{Function, Param, dict, text};
use crate::object::template::context::{Context, Fault};
use crate::object::template::value::{Key, Map, Value};
use Param::{Dict, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("urlParse", &[Text], |context, arguments| {
        context.reserve(text(arguments, 0).len() * 4)?;
        let url = Url::parse(text(arguments, 0)).ok_or("unable to parse url")?;
        let host = url.host.clone();
        let parts: [(&str, Vec<u8>); 8] = [
            ("fragment", url.fragment),
            ("hostname", hostname(&host).to_vec()),
            ("host", host),
            ("opaque", url.opaque),
            ("path", url.path),
            ("query", url.query),
            ("scheme", url.scheme),
            ("userinfo", url.user.map(|user| user.shown()).unwrap_or_default()),
        ];
        let mut entries = BTreeMap::new();
        for (key, value) in parts {
            entries.insert(Key::new(key.as_bytes()), context.text(value)?);
        }
        context.map(false, entries)
    }),
    Function::new("urlJoin", &[Dict], |context, arguments| {
        let joined = join(context, dict(arguments, 0))?;
        context.text(joined)
    }),
];

#[derive(Default)]
struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    user: Option<User>,
    host: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    fragment: Vec<u8>,
}

struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl User {
    fn parse(text: &[u8]) -> Option<Self> {
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
        if !text.iter().all(is_allowed) {
            return None;
        }
        let (name, password) = cut(text, b':');
        let password = match password {
            Some(password) => Some(unescape(password)?),
            None => None,
        };
        Some(Self { name: unescape(name)?, password })
    }

    fn shown(&self) -> Vec<u8> {
        let mut out = escape(&self.name, b"$&+,;=");
        if let Some(password) = &self.password {
            out.push(b':');
            out.extend(escape(password, b"$&+,;="));
        }
        out
    }
}

fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == at) {
        Some(index) => (&text[..index], Some(&text[index + 1..])),
        None => (text, None),
    }
}

fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        if *byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            out.push(*byte);
        }
    }
    Some(out)
}

/// Escapes all but letters, digits, `-_.~` and what is `safe` at that place.
fn escape(text: &[u8], safe: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) || safe.contains(byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

/// A text as a part of a query.
pub(super) fn escape_query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => out.push(b'+'),
            byte => out.extend(escape(&[*byte], b"")),
        }
    }
    out
}

const PATH_SAFE: &[u8] = b"$&+,/:;=@";
const FRAGMENT_SAFE: &[u8] = b"$&+,/:;=?@!()*";

impl Url {
    fn parse(text: &[u8]) -> Option<Self> {
        if text.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
            return None;
        }
        let (text, fragment) = cut(text, b'#');
        let mut url = Self { fragment: unescape(fragment.unwrap_or_default())?, ..Self::default() };
        if text == b"*" {
            url.path = b"*".to_vec();
            return Some(url);
        }
        let (scheme, rest) = scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = cut(rest, b'?');
        url.query = query.unwrap_or_default().to_vec();
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Some(url);
            }
            // A colon in the first part of a relative path would read as a scheme.
            if cut(rest, b'/').0.contains(&b':') {
                return None;
            }
        }
        let mut path = rest;
        if rest.starts_with(b"//") && (!url.scheme.is_empty() || !rest.starts_with(b"///")) {
            let end = rest[2..].iter().position(|byte| *byte == b'/').map_or(rest.len(), |at| at + 2);
            url.authority(&rest[2..end])?;
            path = &rest[end..];
        }
        url.path = unescape(path)?;
        Some(url)
    }

    fn authority(&mut self, text: &[u8]) -> Option<()> {
        let host = match text.iter().rposition(|byte| *byte == b'@') {
            Some(at) => {
                self.user = Some(User::parse(&text[..at])?);
                &text[at + 1..]
            }
            None => text,
        };
        let port = if host.starts_with(b"[") {
            let end = host.iter().rposition(|byte| *byte == b']')?;
            &host[end + 1..]
        } else {
            &host[host.iter().rposition(|byte| *byte == b':').unwrap_or(host.len())..]
        };
        let is_port = port.is_empty() || (port.starts_with(b":") && port[1..].iter().all(u8::is_ascii_digit));
        let is_allowed = |byte: &u8| {
            byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"-_.~!$&'()*+,;=:[]<>\"%".contains(byte)
        };
        if !is_port || !host.iter().all(is_allowed) {
            return None;
        }
        // Only what is no ASCII may be escaped in a host.
        let unescaped = unescape(host)?;
        let escapes = host.iter().filter(|byte| **byte == b'%').count();
        if unescaped.iter().filter(|byte| **byte >= 0x80).count() < escapes {
            return None;
        }
        self.host = unescaped;
        Some(())
    }
}

/// The scheme, which may be empty, and what is behind its colon. Nothing when a colon comes first.
fn scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index > 0 => return Some((&text[..index], &text[index + 1..])),
            b':' => return None,
            _ => break,
        }
    }
    Some((b"", text))
}

fn hostname(host: &[u8]) -> &[u8] {
    if let (true, Some(end)) = (host.starts_with(b"["), host.iter().rposition(|byte| *byte == b']')) {
        return &host[1..end];
    }
    cut(host, b':').0
}

fn member(map: Option<&Map>, key: &str) -> Result<Vec<u8>, Fault> {
    match map.and_then(|map| map.value(key.as_bytes())) {
        None => Ok(Vec::new()),
        Some(Value::Text(text)) => Ok(text.expose_secret().to_vec()),
        Some(other) => {
            let kind = other.kind_name();
            Err(format!("unable to parse {key} key, must be of type string, but {kind} found"))
        }
    }
}

fn join(context: &mut Context, map: Option<&Map>) -> Result<Vec<u8>, Fault> {
    let member = |key| member(map, key);
    let (scheme, host, path, query) = (member("scheme")?, member("host")?, member("path")?, member("query")?);
    let (opaque, fragment, userinfo) = (member("opaque")?, member("fragment")?, member("userinfo")?);
    context.reserve(
        (host.len() + path.len() + query.len() + opaque.len() + fragment.len() + userinfo.len()) * 3,
    )?;
    let user = match userinfo.is_empty() {
        true => None,
        false => {
            let whole = [b"proto://", userinfo.as_slice(), b"@host"].concat();
            Url::parse(&whole).ok_or("unable to parse userinfo in dict")?.user
        }
    };
    let mut out = scheme.clone();
    if !scheme.is_empty() {
        out.push(b':');
    }
    if opaque.is_empty() {
        if !scheme.is_empty() || !host.is_empty() || user.is_some() {
            if !host.is_empty() || !path.is_empty() || user.is_some() {
                out.extend_from_slice(b"//");
            }
            if let Some(user) = user {
                out.extend(user.shown());
                out.push(b'@');
            }
            out.extend(escape(&host, b"!$&'()*+,;=:[]<>\""));
        }
        let escaped = if path == b"*" { path.clone() } else { escape(&path, PATH_SAFE) };
        if !escaped.is_empty() && !escaped.starts_with(b"/") && !host.is_empty() {
            out.push(b'/');
        }
        if out.is_empty() && cut(&escaped, b'/').0.contains(&b':') {
            out.extend_from_slice(b"./");
        }
        out.extend(escaped);
    } else {
        out.extend(opaque);
    }
    if !query.is_empty() {
        out.push(b'?');
        out.extend(query);
    }
    if !fragment.is_empty() {
        out.push(b'#');
        out.extend(escape(&fragment, FRAGMENT_SAFE));
    }
    Ok(out)
}
