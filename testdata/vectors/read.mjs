// A second reader of the format, written from docs/format.md alone, for JSON documents.
//
// Takes JSON on standard input: {"key": hexadecimal data key, "sealed": text of a sealed JSON document}. Prints what it
// opened and what it found, or fails. Needs nothing but Node.js.

import { createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';

const ENC = /^ENC\[AES256_GCM,data:([^,]+),iv:([^,]+),tag:([^,]+),type:([a-z]+)\]$/;

function open(key, text, additionalData) {
  const [, data, iv, tag, type] = ENC.exec(text) ?? fail(`not a sealed value: ${text.slice(0, 20)}`);
  const [d, n, t] = [data, iv, tag].map((part) => Buffer.from(part, 'base64'));
  const cipher = createDecipheriv('aes-256-gcm', key, n, { authTagLength: 16 });
  cipher.setAAD(Buffer.from(additionalData));
  cipher.setAuthTag(t);
  return { type, nonce: n, bytes: Buffer.concat([cipher.update(d), cipher.final()]) };
}

function fail(reason) {
  throw new Error(reason);
}

function derive(key, info) {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), info, 32));
}

// Items: a letter, then each field as its length in 64 bits and its bytes.
class Items {
  constructor(purpose) {
    this.hash = createHash('sha256');
    this.add('P', purpose);
  }

  add(letter, ...fields) {
    this.hash.update(letter);
    for (const field of fields.map((field) => Buffer.from(field))) {
      const length = Buffer.alloc(8);
      length.writeBigUInt64BE(BigInt(field.length));
      this.hash.update(length).update(field);
    }
  }

  hex() {
    return this.hash.digest('hex');
  }
}

function isSealed(value) {
  return typeof value === 'string' && value.startsWith('ENC[AES256_GCM,data:');
}

// Walks the content: the digest over it as stored, each value opened, and the MAC over all of them.
function walk(items, mac, key, value, path) {
  if (Array.isArray(value)) {
    items.add('L', '');
    const opened = value.map((item) => walk(items, mac, key, item, path));
    items.add('E');
    return opened;
  }
  if (value !== null && typeof value === 'object') {
    items.add('M', '');
    const opened = {};
    for (const [name, item] of Object.entries(value)) {
      items.add('K', name);
      opened[name] = walk(items, mac, key, item, `${path}${name}:`);
    }
    items.add('E');
    return opened;
  }
  if (isSealed(value)) {
    items.add('S', '', value);
    const { type, bytes } = open(key, value, path);
    mac.update(bytes);
    return { type, text: bytes.toString() };
  }
  if (value === null) {
    items.add('N', '');
    return null;
  }
  if (typeof value !== 'string') fail('clear numbers and booleans are not this reader\'s');
  items.add('V', '', 'str', value);
  mac.update(value);
  return value;
}

function meta(items, value) {
  if (Array.isArray(value)) {
    items.add('L');
    value.forEach((item) => meta(items, item));
    items.add('E');
  } else if (typeof value === 'object') {
    items.add('M');
    const names = Object.keys(value).filter((name) => value[name] !== null);
    names.sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
    for (const name of names) {
      items.add('K', name);
      meta(items, value[name]);
    }
    items.add('E');
  } else if (typeof value === 'string') {
    items.add('T', value);
  } else if (typeof value === 'boolean') {
    items.add('B', value ? '1' : '0');
  } else {
    items.add('I', String(value));
  }
}

const input = JSON.parse(readFileSync(0, 'utf8'));
const key = Buffer.from(input.key, 'hex');
const { sops, ...content } = JSON.parse(input.sealed);

const tree = new Items('lacre.dev/tree/file/1');
tree.add('D');
const mac = createHash('sha512');
const opened = walk(tree, mac, key, content, '');
const code = open(key, sops.mac, sops.lastmodified);
if (code.bytes.toString() !== mac.digest('hex').toUpperCase()) fail('the MAC differs');
const [random, mark] = [code.nonce.subarray(0, 16), code.nonce.subarray(16)];
const expected = createHmac('sha256', derive(key, 'lacre.dev/mark/1')).update(random).update(sops.lastmodified).digest();
if (!expected.subarray(0, 16).equals(mark)) fail('the MAC has no mark');

const claims = JSON.parse(open(derive(key, 'lacre.dev/seal/1'), sops.lacre, 'lacre/1').bytes.toString());
const block = new Items('lacre.dev/meta/1');
meta(block, Object.fromEntries(Object.entries(sops).filter(([name]) => !name.startsWith('lacre'))));
if (claims.v !== 1 || claims.profile !== 'file' || claims.docs !== 1) fail('other claims');
if (claims.tree !== tree.hex()) fail('the digest of the content differs');
if (claims.meta !== block.hex()) fail('the digest of the block differs');
process.stdout.write(JSON.stringify({ opened, source: claims.source ?? {} }));
