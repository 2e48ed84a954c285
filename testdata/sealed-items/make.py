"""Makes the cases of this folder from docs/format.md, with OpenSSL under python3-cryptography: a second writer.

Run in this folder once the keys in ../sealing-keys are there. Items are random, so every run changes every file: run it
for new cases into another folder and take over those.
"""

import base64
import os
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SIZES = {name: open(f"../sealing-keys/{name}.pem", "rb").read() for name in ("rsa-2048", "rsa-2048-b", "rsa-3072", "rsa-4096")}
KEYS = {n: serialization.load_pem_private_key(p, None).public_key() for n, p in SIZES.items()}
OUT = sys.argv[1] if len(sys.argv) > 1 else "."


def oaep(label, hash=hashes.SHA256, mask=hashes.SHA256):
    return padding.OAEP(mgf=padding.MGF1(mask()), algorithm=hash(), label=label or None)


def item(plain, label=b"shop/db", key="rsa-2048", pad=None, session=None, nonce=bytes(12), bound=None, n=None):
    session = os.urandom(32) if session is None else session
    wrapped = KEYS[key].encrypt(session, pad or oaep(label))
    content = AESGCM(session).encrypt(nonce, plain, bound) if len(session) in (16, 24, 32) else plain + bytes(16)
    return (len(wrapped) if n is None else n).to_bytes(2, "big") + wrapped + content


def case(name, expect, body, label="shop/db", keys="rsa-2048"):
    text = body if isinstance(body, str) else base64.b64encode(body).decode() + "\n"
    with open(f"{OUT}/{name}.item", "w", newline="") as file:
        file.write(f"label: {label}\nkeys: {keys}\nexpect: {expect}\n\n{text}")


def opens(name, plain, **how):
    label = how.pop("label", b"shop/db")
    key = how.pop("key", "rsa-2048")
    case(name, "opens " + plain.hex(), item(plain, label, key, **how), label.decode(), how.pop("keys", key))


def flipped(raw, at):
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1:]


opens("strict-empty", b"")
opens("strict-one-byte", b"a")
opens("strict-binary", bytes(range(256)))
opens("strict-utf8", "schlüssel ✓".encode())
opens("strict-crlf", b"a\r\nb\r\n")
opens("namespace-wide", b"wide", label=b"shop")
opens("cluster-wide", b"wider", label=b"")
opens("modulus-3072", b"larger", key="rsa-3072")
opens("modulus-4096", b"the usual one", key="rsa-4096")
case("second-key", "opens 62", item(b"b", key="rsa-2048-b"), keys="rsa-2048 rsa-2048-b")
case("second-key-of-other-size", "opens 62", item(b"b", key="rsa-2048"), keys="rsa-3072 rsa-2048")
good = base64.b64encode(item(b"folded")).decode()
case("folded-lines", "opens 666f6c646564", "\n".join(good[i:i + 76] for i in range(0, len(good), 76)) + "\n")
case("folded-crlf", "opens 666f6c646564", "\r\n".join(good[i:i + 64] for i in range(0, len(good), 64)) + "\r\n")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# 2 + 256 + 2 + 16 bytes are a multiple of three: no bit is unused. One more leaves four, two more two.
for size, padded in ((2, ""), (4, "="), (3, "==")):
    text = base64.b64encode(item(b"x" * size)).decode().rstrip("=")
    last = ALPHABET[ALPHABET.index(text[-1]) | (1 if padded else 0)]
    case(f"trailing-bits-{len(padded)}", "opens " + "78" * size, text[:-1] + last + padded)

for name, label in [("scope-namespace", "shop"), ("scope-cluster", ""), ("name", "shop/db2"), ("namespace", "shop2/db"),
                    ("case", "Shop/db"), ("slash", "shop/db/"), ("space", "shop/db "), ("zero", "shop/db\x00")]:
    case(f"wrong-label-{name}", "NotOpened", item(b"x", label.encode()))
case("wrong-label-strict-opened-wide", "NotOpened", item(b"x", b"shop/db"), label="")
case("wrong-label-wide-opened-strict", "NotOpened", item(b"x", b""), label="shop/db")
case("wrong-key", "NotOpened", item(b"x", key="rsa-2048-b"))
case("wrong-key-size", "NoKeyOfSize", item(b"x", key="rsa-3072"))
case("padding-pkcs1", "NotOpened", item(b"x", pad=padding.PKCS1v15()))
case("padding-oaep-sha1", "NotOpened", item(b"x", pad=oaep(b"shop/db", hashes.SHA1, hashes.SHA1)))
case("padding-oaep-mgf-sha1", "NotOpened", item(b"x", pad=oaep(b"shop/db", hashes.SHA256, hashes.SHA1)))
case("padding-oaep-sha512", "NotOpened", item(b"x", pad=oaep(b"shop/db", hashes.SHA512, hashes.SHA512)))
for length in (0, 16, 24, 31, 33, 64):
    case(f"session-key-{length}-bytes", "Corrupt", item(b"x", session=os.urandom(length)))
case("nonce-not-zero", "Corrupt", item(b"x", nonce=bytes(11) + b"\1"))
case("bound-data", "Corrupt", item(b"x", bound=b"shop/db"))

raw = item(b"content")
for name, at, expect in [("rsa-first-byte", 2, "NotOpened"), ("rsa-last-byte", 257, "NotOpened"),
                         ("content", 258, "Corrupt"), ("tag", len(raw) - 1, "Corrupt")]:
    case(f"flipped-{name}", expect, flipped(raw, at))
case("flipped-length-low", "NoKeyOfSize", flipped(raw, 1))
case("flipped-length-high", "NoKeyOfSize", flipped(raw, 0))
for name, size, expect in [("nothing", 0, "TooShort"), ("one-byte", 1, "TooShort"), ("length-only", 2, "TooShort"),
                           ("in-rsa", 100, "TooShort"), ("after-rsa", 258, "TooShort"), ("in-tag", 273, "TooShort"),
                           ("content-gone", 274, "Corrupt"), ("last-byte", len(raw) - 1, "Corrupt")]:
    case(f"cut-{name}", expect, raw[:size])
case("longer-by-a-byte", "Corrupt", raw + b"\0")
case("length-of-another-key", "NoKeyOfSize", item(b"x" * 300, n=512))
case("length-of-another-key-that-is-there", "NotOpened", item(b"x" * 300, n=512), keys="rsa-2048 rsa-4096")
case("length-0", "NoKeyOfSize", item(b"x", n=0))
case("length-65535", "TooShort", item(b"x", n=65535))
case("length-of-one-less", "NoKeyOfSize", item(b"x", n=255))
case("rsa-zeros", "NotOpened", b"\1\0" + bytes(256 + 16))
case("rsa-ones", "NotOpened", b"\1\0" + b"\xff" * (256 + 16))
case("two-items", "Corrupt", raw + raw)
case("no-keys", "NoKeyOfSize", raw, keys="")

text = base64.b64encode(raw).decode()
case("base64-space", "Base64 40", text[:40] + " " + text[40:])
case("base64-space-before", "Base64 0", " " + text)
case("base64-tab", "Base64 4", text[:4] + "\t" + text[4:])
case("base64-space-at-end", f"Base64 {len(text)}", text + " ")
case("base64-url-alphabet", "Base64 1", "A-" + text[2:])
case("base64-byte-order-mark", "Base64 0", "\ufeff" + text)
case("base64-quoted", "Base64 0", f'"{text}"')
case("base64-after-line-break", "Base64 9", "AQAB\nAQAB-" + text)
case("base64-padding-inside", "Base64 4", "AQ==" + text)
case("base64-no-padding", "Base64 4", "AQABAQ")
case("base64-half-padding", "Base64 8", "AQABAQ=\n")
case("base64-padding-only", "Base64 0", "====")
case("base64-hex", "TooShort", "deadbeef")
case("base64-null-word", "TooShort", "null")
case("base64-sealed-value", "Base64 3", "ENC[AES256_GCM,data:,iv:,tag:,type:str]")
