"""The key services of Google and Microsoft, as far as keys of files need them, behind one proxy on loopback.

Clients are told of a proxy and of an authority to trust, and call the services by their real names: what is tested is
what they do in production. Keys are real (AES-256-GCM and RSA-OAEP-256), and what a real service checks is checked:
path, token, content. Each request is a line of the log: host, method, path, who called, what came of it.
"""

import base64
import datetime
import json
import os
import ssl
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import NameOID

PORT, FOLDER = int(sys.argv[1]), sys.argv[2]
TENANT, CLIENT, SECRET = "11111111-2222-3333-4444-555555555555", "lacre-test-client", "lacre-test-secret"
GOOGLE_TOKEN, AZURE_TOKEN = "lacre-test-google-token", "lacre-test-azure-token"
LOGIN, VAULT, GOOGLE = "login.microsoftonline.com", "team.vault.azure.net", "cloudkms.googleapis.com"
ACCOUNTS, STRANGER = "oauth2.googleapis.com", "team.vault.example.org"

RING = "projects/lacre/locations/global/keyRings/ring/cryptoKeys/"
google_keys = {RING + name: AESGCM.generate_key(256) for name in ("a", "b")}
VERSIONS = ["0" * 31 + "1", "0" * 31 + "2"]
azure_keys = {version: rsa.generate_private_key(65537, 2048) for version in VERSIONS}
OAEP = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


def certificates():
    """An authority, and one certificate of it for all names."""
    now = datetime.datetime.now(datetime.timezone.utc)
    authority, server = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    name = lambda text: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def certificate(subject, key, *extensions):
        builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("test authority"))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        day = datetime.timedelta(days=1)
        builder = builder.not_valid_before(now - day).not_valid_after(now + day)
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in (LOGIN, VAULT, GOOGLE, ACCOUNTS, STRANGER)])
    server_auth = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
    ca = certificate("test authority", authority, (x509.BasicConstraints(True, 0), True), (usage, True))
    leaf = certificate("server", server, (names, False), (server_auth, False), (x509.BasicConstraints(False, None), True))
    key = server.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for file, content in (("server.pem", leaf + key), ("ca.pem.new", ca)):
        with open(os.path.join(FOLDER, file), "wb") as out:
            out.write(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"))
    os.rename(os.path.join(FOLDER, "ca.pem.new"), os.path.join(FOLDER, "ca.pem"))
    return context


class Refused(Exception):
    pass


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def google(path, headers, body):
    def refuse(code, status, message):
        raise Refused(code, {"error": {"code": code, "status": status, "message": message}})

    if headers.get("Authorization") != "Bearer " + GOOGLE_TOKEN:
        refuse(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
    name, _, verb = urllib.parse.urlsplit(path).path.removeprefix("/v1/").rpartition(":")
    if name not in google_keys:
        refuse(404, "NOT_FOUND", "CryptoKey " + name + " not found.")
    fields = json.loads(body)
    wanted = {"encrypt": "plaintext", "decrypt": "ciphertext"}.get(verb)
    if wanted is None or set(fields) - {"name", wanted, wanted + "Crc32c"} or fields.get("name", name) != name:
        refuse(400, "INVALID_ARGUMENT", "unexpected fields")
    data = base64.b64decode(fields[wanted], validate=True)
    if int(fields.get(wanted + "Crc32c", crc32c(data))) != crc32c(data):
        refuse(400, "INVALID_ARGUMENT", "The checksum did not match the data.")
    cipher = AESGCM(google_keys[name])
    if verb == "encrypt":
        nonce = os.urandom(12)
        sealed = b"\n" + nonce + cipher.encrypt(nonce, data, name.encode())
        return {"name": name + "/cryptoKeyVersions/1", "ciphertext": base64.b64encode(sealed).decode(),
                "ciphertextCrc32c": str(crc32c(sealed))}
    try:
        opened = cipher.decrypt(data[1:13], data[13:], name.encode())
    except Exception:
        refuse(400, "INVALID_ARGUMENT", "Decryption failed: the ciphertext is invalid.")
    return {"plaintext": base64.b64encode(opened).decode(), "plaintextCrc32c": str(crc32c(opened))}


def accounts(path, body):
    try:
        given = json.loads(body)
    except ValueError:
        given = {key: values[0] for key, values in urllib.parse.parse_qs(body.decode()).items()}
    wanted = {"grant_type": "refresh_token", "client_id": CLIENT, "client_secret": SECRET,
              "refresh_token": "lacre-test-refresh"}
    if path != "/token" or {key: given.get(key) for key in wanted} != wanted:
        raise Refused(400, {"error": "invalid_grant", "error_description": "Bad Request"})
    return {"access_token": GOOGLE_TOKEN, "token_type": "Bearer", "expires_in": 3600}


def login(path, body):
    parts = urllib.parse.urlsplit(path)
    base = f"https://{LOGIN}/{TENANT}"
    if parts.path == "/common/discovery/instance":
        alias = {"preferred_network": LOGIN, "preferred_cache": "login.windows.net", "aliases": [LOGIN]}
        return {"tenant_discovery_endpoint": base + "/v2.0/.well-known/openid-configuration", "metadata": [alias]}
    if parts.path == f"/{TENANT}/v2.0/.well-known/openid-configuration":
        return {"token_endpoint": base + "/oauth2/v2.0/token", "issuer": base + "/v2.0",
                "authorization_endpoint": base + "/oauth2/v2.0/authorize"}
    form = {key: values[0] for key, values in urllib.parse.parse_qs(body.decode()).items()}
    if parts.path != f"/{TENANT}/oauth2/v2.0/token" or form.get("grant_type") != "client_credentials":
        raise Refused(404, {"error": "invalid_request"})
    if (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET):
        raise Refused(401, {"error": "invalid_client", "error_codes": [7000215],
                            "error_description": "AADSTS7000215: Invalid client secret provided."})
    scopes = (form.get("scope") or "").split()
    if "https://vault.azure.net/.default" not in scopes:
        raise Refused(400, {"error": "invalid_resource", "error_codes": [500011],
                            "error_description": "AADSTS500011: The resource principal was not found."})
    return {"token_type": "Bearer", "expires_in": 3600, "ext_expires_in": 3600, "access_token": AZURE_TOKEN}


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def vault(host, method, path, headers, body):
    def refuse(code, word, message):
        raise Refused(code, {"error": {"code": word, "message": message}})

    if "Authorization" not in headers:
        audience = "https://vault.azure.net"
        raise Refused(401, {"error": {"code": "Unauthorized", "message": "a token is missing"}},
                      f'Bearer authorization="https://{LOGIN}/{TENANT}", resource="{audience}"')
    if headers["Authorization"] != "Bearer " + AZURE_TOKEN:
        refuse(401, "Unauthorized", "the token is not valid")
    parts = [part for part in urllib.parse.urlsplit(path).path.split("/") if part]
    if parts[:1] != ["keys"] or parts[1:2] != ["k"]:
        refuse(404, "KeyNotFound", "A key with that name was not found in this key vault.")
    verb = parts.pop() if parts[-1] in ("encrypt", "decrypt") else "get"
    version = parts[2] if len(parts) == 3 else VERSIONS[-1]
    if len(parts) > 3 or version not in azure_keys:
        refuse(404, "KeyNotFound", "no such version")
    key, kid = azure_keys[version], f"https://{VAULT}/keys/k/{version}"
    if verb == "get":
        numbers = key.public_key().public_numbers()
        as_bytes = lambda number: base64url(number.to_bytes((number.bit_length() + 7) // 8, "big"))
        return {"key": {"kid": kid, "kty": "RSA", "n": as_bytes(numbers.n), "e": as_bytes(numbers.e)}}
    fields = json.loads(body)
    if method != "POST" or fields.get("alg") != "RSA-OAEP-256" or "=" in fields["value"]:
        refuse(400, "BadParameter", "The algorithm or value is not supported.")
    data = base64.urlsafe_b64decode(fields["value"] + "==")
    try:
        done = key.public_key().encrypt(data, OAEP) if verb == "encrypt" else key.decrypt(data, OAEP)
    except Exception:
        refuse(400, "BadParameter", "The parameter is incorrect.")
    return {"kid": kid, "value": base64url(done)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host = None

    def do_CONNECT(self):
        self.host = self.path.partition(":")[0]
        self.send_response_only(200)
        self.end_headers()
        self.connection = self.request = TLS.wrap_socket(self.request, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        host, code, challenge = self.host or GOOGLE, 200, None
        try:
            if host == GOOGLE:
                answer = google(self.path, self.headers, body)
            elif host == ACCOUNTS:
                answer = accounts(self.path, body)
            elif host == LOGIN:
                answer = login(self.path, body)
            else:
                answer = vault(host, self.command, self.path, self.headers, body)
        except Refused as refused:
            code, answer, challenge = (*refused.args, None)[:3]
        except (ValueError, KeyError) as error:
            code, answer = 400, {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": repr(error)}}
        said = json.dumps(answer).encode()
        token = "token" if "Authorization" in self.headers else "none"
        agent = (self.headers.get("User-Agent") or "-").split()[0]
        print(host, self.command, self.path, token, len(body), agent, code, flush=True)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET

    def log_message(self, *_):
        pass


TLS = certificates()
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
