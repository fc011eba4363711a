/**
 * A user's password and what it opens: the file keeps a verifier (scrypt, RFC 7914, then SHA-256) and
 * the user's API key, encrypted with a key that comes from the same password (AES-256-GCM). Who has the
 * file has neither.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  randomBytes,
  randomInt,
  scrypt,
  timingSafeEqual,
} from "node:crypto";

/** Cost of one password. */
export interface PasswordCost {
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

/** 32 MiB, a quarter of a second: one of the settings of OWASP's password storage page. */
export const PASSWORD_COST: PasswordCost = { n: 32_768, r: 8, p: 3 };

/** Password and key as they are stored; all bytes in hex. */
export interface SealedKey {
  readonly cost: PasswordCost;
  readonly salt: string;
  readonly verifier: string;
  readonly iv: string;
  readonly sealed: string;
  readonly tag: string;
}

/** Longest password: what is longer only makes the hash's first step slow. */
export const MAX_PASSWORD = 128;

/** Shortest password that a person may choose. */
export const MIN_PASSWORD = 12;

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;

/** Letters and digits that are not mistaken for each other. */
const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

/** A password that is shown once: 100 bits in four groups. */
export function newPassword(): string {
  const group = () => Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return [group(), group(), group(), group()].join("-");
}

/** Seals a user's API key with a password. */
export async function sealKey(
  apiKey: string,
  password: string,
  owner: string,
  cost: PasswordCost = PASSWORD_COST,
): Promise<SealedKey> {
  const salt = randomBytes(16);
  const iv = randomBytes(12);
  const { verifier, key } = await derive(password, salt, cost);
  const cipher = createCipheriv(CIPHER, key, iv).setAAD(Buffer.from(owner, "utf8"));
  const sealed = Buffer.concat([cipher.update(apiKey, "utf8"), cipher.final()]);
  return {
    cost,
    salt: salt.toString("hex"),
    verifier: verifier.toString("hex"),
    iv: iv.toString("hex"),
    sealed: sealed.toString("hex"),
    tag: cipher.getAuthTag().toString("hex"),
  };
}

/** The API key behind a password; undefined for another password. */
export async function openKey(
  stored: SealedKey,
  password: string,
  owner: string,
): Promise<string | undefined> {
  const { verifier, key } = await derive(password, Buffer.from(stored.salt, "hex"), stored.cost);
  const expected = Buffer.from(stored.verifier, "hex");
  if (expected.length !== verifier.length || !timingSafeEqual(expected, verifier)) return undefined;
  const decipher = createDecipheriv(CIPHER, key, Buffer.from(stored.iv, "hex"))
    .setAAD(Buffer.from(owner, "utf8"))
    .setAuthTag(Buffer.from(stored.tag, "hex"));
  const opened = [decipher.update(Buffer.from(stored.sealed, "hex")), decipher.final()];
  return Buffer.concat(opened).toString("utf8");
}

/** One hash for both, so that a try costs the same whether it succeeds or not. */
function derive(
  password: string,
  salt: Uint8Array,
  { n, r, p }: PasswordCost,
): Promise<{ readonly verifier: Buffer; readonly key: Buffer }> {
  const text = password.slice(0, MAX_PASSWORD).normalize("NFKC");
  const options = { N: n, r, p, maxmem: 256 * n * r };
  return new Promise((resolve, reject) => {
    scrypt(text, salt, 2 * KEY_BYTES, options, (error, bytes) => {
      if (error !== null) {
        reject(error);
        return;
      }
      const verifier = createHash("sha256").update(bytes.subarray(0, KEY_BYTES)).digest();
      resolve({ verifier, key: bytes.subarray(KEY_BYTES) });
    });
  });
}
