/** Ethereum keystores of version 3 ("Web3 Secret Storage"): scrypt, AES-128-CTR, keccak MAC. */
import { createCipheriv, randomBytes, randomUUID, scrypt } from "node:crypto";
import { privateKeyToAddress, toChecksumAddress } from "../chain/address.js";
import { keccak256 } from "../chain/crypto.js";

/** Cost of scrypt; 2^17 takes well under a second here and is what other wallets write. */
export interface ScryptCost {
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

/** The usual cost: N = 131072, r = 8, p = 1, which needs 128 MiB. */
export const STANDARD_SCRYPT: ScryptCost = { n: 131_072, r: 8, p: 1 };

const DERIVED_KEY_BYTES = 32;
const CIPHER = "aes-128-ctr";

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
  const derived = await deriveKey(passphrase, salt, cost);
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

function deriveKey(passphrase: string, salt: Uint8Array, cost: ScryptCost): Promise<Buffer> {
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
