/** The public side of this node's keys, as CometBFT's files hold them. */
import fs from "node:fs";
import { z } from "zod";
import { type Address, bytesToAddress } from "../../chain/address.js";
import { sha256 } from "../../chain/crypto.js";
import { AppError, errorMessage } from "../../chain/errors.js";

/** Codes of faults in key files. */
export type KeyFileErrorCode = "KEY_FILE_INVALID";

/** A key file that cannot be used. */
export class KeyFileError extends AppError<KeyFileErrorCode> {}

/** Who this node is on the chain. */
export interface ValidatorIdentity {
  /** First 20 bytes of SHA-256 of the public key; the coinbase of the blocks it proposes. */
  readonly address: Address;
  /** 32-byte ed25519 public key, base64. */
  readonly publicKey: string;
}

const ed25519Key = z.object({ type: z.string(), value: z.base64() });
const validatorKeyFile = z.object({
  pub_key: ed25519Key.extend({ type: z.literal("tendermint/PubKeyEd25519") }),
});
const nodeKeyFile = z.object({
  priv_key: ed25519Key.extend({ type: z.literal("tendermint/PrivKeyEd25519") }),
});

function readKeyFile<T>(file: string, schema: z.ZodType<T>): T {
  try {
    return schema.parse(JSON.parse(fs.readFileSync(file, "utf8")));
  } catch (cause) {
    // Zod names the path of the fault, never the value, so no key material can get out.
    throw new KeyFileError("KEY_FILE_INVALID", `cannot use ${file}: ${errorMessage(cause)}`);
  }
}

function addressOf(publicKey: Uint8Array): Address {
  return bytesToAddress(sha256(publicKey).subarray(0, 20));
}

/** Identity from `priv_validator_key.json`. Throws KEY_FILE_INVALID. */
export function loadValidatorIdentity(file: string): ValidatorIdentity {
  const publicKey = readKeyFile(file, validatorKeyFile).pub_key.value;
  return { address: addressOf(Buffer.from(publicKey, "base64")), publicKey };
}

/**
 * Node id from `node_key.json`: 40 hex digits of SHA-256 of the public key (D24). The file holds
 * seed and public key, 64 bytes. Throws KEY_FILE_INVALID.
 */
export function loadNodeId(file: string): string {
  const bytes = Buffer.from(readKeyFile(file, nodeKeyFile).priv_key.value, "base64");
  if (bytes.length !== 64) {
    throw new KeyFileError("KEY_FILE_INVALID", `cannot use ${file}: the key is not 64 bytes`);
  }
  return addressOf(bytes.subarray(32)).slice(2);
}
