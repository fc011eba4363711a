/**
 * Ethereum keystores of version 3 ("Web3 Secret Storage"): written with scrypt, AES-128-CTR and a
 * keccak256 MAC; read with scrypt or PBKDF2. No message quotes anything of a file or a passphrase.
 */
import {
  createCipheriv,
  createDecipheriv,
  pbkdf2Sync,
  randomBytes,
  randomUUID,
  scrypt,
  scryptSync,
  timingSafeEqual,
} from "node:crypto";
import { type Address, parseAddress, toChecksumAddress } from "../address.js";
import { privateKeyToAddress } from "./account-key.js";
import { keccak256 } from "../hashes.js";
import { ChainError } from "../errors.js";

const CIPHER = "aes-128-ctr";

/** Cost of scrypt; 2^17 takes well under a second here and is what other wallets write. */
export interface ScryptCost {
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

/** The usual cost: N = 131072, r = 8, p = 1, which needs 128 MiB. */
export const STANDARD_SCRYPT: ScryptCost = { n: 131_072, r: 8, p: 1 };

const DERIVED_KEY_BYTES = 32;

/**
 * Encrypts a 32-byte private key and returns the text of the keystore file (JSON, one object, with
 * an `address` in EIP-55 form that is readable without the passphrase).
 * @throws INVALID_KEY for bytes that are no secp256k1 private key
 */
export async function encryptKeystore(
  privateKey: Uint8Array,
  passphrase: string,
  cost: ScryptCost = STANDARD_SCRYPT,
): Promise<string> {
  const address = toChecksumAddress(privateKeyToAddress(privateKey));
  const salt = randomBytes(32);
  const iv = randomBytes(16);
  const derived = await deriveNewKey(passphrase, salt, cost);
  const cipher = createCipheriv(CIPHER, derived.subarray(0, 16), iv);
  const ciphertext = Buffer.concat([cipher.update(privateKey), cipher.final()]);
  const mac = keccak256(Buffer.concat([derived.subarray(16, 32), ciphertext]));
  const keystore = {
    version: 3,
    id: randomUUID(),
    address,
    crypto: {
      cipher: CIPHER,
      cipherparams: { iv: iv.toString("hex") },
      ciphertext: ciphertext.toString("hex"),
      kdf: "scrypt",
      kdfparams: {
        dklen: DERIVED_KEY_BYTES,
        n: cost.n,
        r: cost.r,
        p: cost.p,
        salt: salt.toString("hex"),
      },
      mac: Buffer.from(mac).toString("hex"),
    },
  };
  return `${JSON.stringify(keystore, undefined, 2)}\n`;
}

/** A decrypted key with the address it belongs to. */
export interface WalletKey {
  readonly address: Address;
  /** 32 bytes. */
  readonly privateKey: Uint8Array;
}

/** Most memory that a keystore may make scrypt use: 1 GiB is n = 2^20 at r = 8. */
const MAX_SCRYPT_BYTES = 1024 * 1024 * 1024;

/** Rounds beyond which PBKDF2 would hold up the start for minutes. */
const MAX_PBKDF2_ROUNDS = 10_000_000;

/**
 * Decrypts keystore JSON with its passphrase.
 * @throws KEYSTORE_MALFORMED, KEYSTORE_WRONG_PASSPHRASE, KEYSTORE_WRONG_ADDRESS
 */
export function decryptKeystore(json: string, passphrase: string): WalletKey {
  const keystore = parseKeystore(json);
  const derived = openingKey(keystore, passphrase);
  const decipher = createDecipheriv(CIPHER, derived.subarray(0, 16), keystore.iv);
  const privateKey = Buffer.concat([decipher.update(keystore.ciphertext), decipher.final()]);
  const address = addressOf(privateKey);
  if (keystore.address !== undefined && keystore.address !== address) {
    throw new ChainError("KEYSTORE_WRONG_ADDRESS", "the keystore names another address", {
      details: { stated: keystore.address, found: address },
    });
  }
  return { address, privateKey };
}

/**
 * Address that keystore JSON states, with or without 0x; the encrypted key is not touched.
 * @throws KEYSTORE_MALFORMED when it is no keystore or states none
 */
export function keystoreAddress(json: string): Address {
  const stated = fieldsOf(parseJson(json), "keystore")["address"];
  if (typeof stated !== "string") throw malformed("it states no address");
  return parseStatedAddress(stated);
}

/** Whether a wallet's file names its address alone, and the key is held elsewhere; false for no such file. */
export function namesAddressAlone(json: string): boolean {
  try {
    const fields = fieldsOf(parseJson(json), "keystore");
    return fields["address"] !== undefined && (fields["crypto"] ?? fields["Crypto"]) === undefined;
  } catch (error) {
    if (error instanceof ChainError) return false;
    throw error;
  }
}

function deriveNewKey(passphrase: string, salt: Uint8Array, cost: ScryptCost): Promise<Buffer> {
  const needed = 128 * cost.n * cost.r;
  const options = { N: cost.n, r: cost.r, p: cost.p, maxmem: needed + 32 * 1024 * 1024 };
  return new Promise((resolve, reject) => {
    // NFKC, as the wallets do: the same passphrase typed on another keyboard opens the file.
    scrypt(passphrase.normalize("NFKC"), salt, DERIVED_KEY_BYTES, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}

interface Keystore {
  readonly address: Address | undefined;
  readonly iv: Uint8Array;
  readonly ciphertext: Uint8Array;
  /** 32 bytes. */
  readonly mac: Uint8Array;
  readonly kdf: string;
  readonly kdfParams: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

function parseKeystore(json: string): Keystore {
  const root = fieldsOf(parseJson(json), "keystore");
  if (root["version"] !== 3) throw malformed("version is not 3");
  // Some programs write the section with a capital letter.
  const crypto = fieldsOf(root["crypto"] ?? root["Crypto"], "crypto");
  if (crypto["cipher"] !== CIPHER) throw malformed("cipher is not aes-128-ctr");
  const stated = root["address"];
  return {
    address: typeof stated === "string" ? parseStatedAddress(stated) : undefined,
    iv: hexField(fieldsOf(crypto["cipherparams"], "cipherparams"), "iv", 16),
    ciphertext: hexField(crypto, "ciphertext", 32),
    mac: hexField(crypto, "mac", 32),
    kdf: String(crypto["kdf"]),
    kdfParams: fieldsOf(crypto["kdfparams"], "kdfparams"),
  };
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // The cause is dropped on purpose: it may quote the file's content.
    throw malformed("not JSON");
  }
}

function parseStatedAddress(text: string): Address {
  try {
    return parseAddress(text.startsWith("0x") ? text : `0x${text}`);
  } catch {
    throw malformed("address is not an address");
  }
}

/**
 * The derived key that the keystore's MAC was made with.
 * @throws KEYSTORE_WRONG_PASSPHRASE
 */
function openingKey(keystore: Keystore, passphrase: string): Buffer {
  // Some wallets write with NFKC, as is done here; geth, cast and eth_keyfile take what was typed. Releases
  // before have cut blanks off around it, and opened with whatever stood in a file.
  const spellings = [passphrase.normalize("NFKC"), passphrase, passphrase.trim().normalize("NFKC")];
  for (const spelling of new Set(spellings)) {
    const derived = deriveKey(keystore, spelling);
    const mac = keccak256(Buffer.concat([derived.subarray(16, 32), keystore.ciphertext]));
    if (timingSafeEqual(mac, keystore.mac)) return derived;
  }
  throw new ChainError("KEYSTORE_WRONG_PASSPHRASE", "the passphrase does not open the keystore");
}

function deriveKey(keystore: Keystore, passphrase: string): Buffer {
  const { kdf, kdfParams } = keystore;
  const salt = hexField(kdfParams, "salt");
  const dkLength = numberField(kdfParams, "dklen", 32, 64);
  const secret = Buffer.from(passphrase, "utf8");
  if (kdf === "scrypt") {
    const n = numberField(kdfParams, "n", 2, 2 ** 22);
    const r = numberField(kdfParams, "r", 1, 64);
    const p = numberField(kdfParams, "p", 1, 64);
    const neededBytes = 128 * n * r;
    // RFC 7914: n is a power of two below 2^(128 r / 8); OpenSSL refuses what is not.
    const isSound = Number.isInteger(Math.log2(n)) && Math.log2(n) < 16 * r;
    if (!isSound || neededBytes > MAX_SCRYPT_BYTES) throw malformed("scrypt n is unusable");
    const maxmem = neededBytes + 128 * r * p + 1024 * 1024;
    return scryptSync(secret, salt, dkLength, { N: n, r, p, maxmem });
  }
  if (kdf === "pbkdf2" && kdfParams["prf"] === "hmac-sha256") {
    const rounds = numberField(kdfParams, "c", 1, MAX_PBKDF2_ROUNDS);
    return pbkdf2Sync(secret, salt, rounds, dkLength, "sha256");
  }
  throw malformed("kdf is neither scrypt nor pbkdf2 with hmac-sha256");
}

function addressOf(privateKey: Uint8Array): Address {
  try {
    return privateKeyToAddress(privateKey);
  } catch {
    throw malformed("it holds no private key");
  }
}

function fieldsOf(value: unknown, name: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw malformed(`${name} is not an object`);
  }
  return value as Fields;
}

function hexField(fields: Fields, name: string, length?: number): Uint8Array {
  const text = fields[name];
  if (typeof text !== "string" || !/^(0x)?([0-9a-fA-F]{2}){1,64}$/.test(text)) {
    throw malformed(`${name} is not hex`);
  }
  const bytes = Buffer.from(text.replace(/^0x/, ""), "hex");
  if (length !== undefined && bytes.length !== length) {
    throw malformed(`${name} is not ${length} bytes long`);
  }
  return bytes;
}

function numberField(fields: Fields, name: string, min: number, max: number): number {
  const value = fields[name];
  const isUsable =
    typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max;
  if (!isUsable) throw malformed(`${name} is not a whole number from ${min} to ${max}`);
  return value;
}

function malformed(what: string): ChainError {
  return new ChainError("KEYSTORE_MALFORMED", `the keystore is unusable: ${what}`);
}
