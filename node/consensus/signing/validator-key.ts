/** The public side of this node's keys, as CometBFT's files hold them. */
import fs from "node:fs";
import { z } from "zod";
import type { Address } from "../../../chain/address.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { AppError, errorMessage } from "../../../chain/errors.js";

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

function parseKeyFile<T>(text: string, file: string, schema: z.ZodType<T>): T {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined; // Node's message could quote the text, and with it the key.
  }
  const result = schema.safeParse(parsed);
  if (result.success) return result.data;
  // Zod names the path of the fault, never the value, so no key material can get out.
  const reason = result.error.issues.map(({ path }) => path.join(".") || "the file").join(", ");
  throw new KeyFileError(
    "KEY_FILE_INVALID",
    `${file} is not an ed25519 key in CometBFT's shape (look at ${reason})`,
  );
}

function readText(file: string): string {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (cause) {
    throw new KeyFileError("KEY_FILE_INVALID", `cannot read ${file}: ${errorMessage(cause)}`, {
      cause,
    });
  }
}

/**
 * Identity from the text of a `priv_validator_key.json`.
 * @param file its path, for the message
 * @throws KEY_FILE_INVALID
 */
export function parseValidatorIdentity(text: string, file: string): ValidatorIdentity {
  const publicKey = parseKeyFile(text, file, validatorKeyFile).pub_key.value;
  const bytes = Buffer.from(publicKey, "base64");
  if (bytes.length !== 32) {
    throw new KeyFileError(
      "KEY_FILE_INVALID",
      `${file} is not an ed25519 key in CometBFT's shape (a public key has 32 bytes)`,
    );
  }
  return { address: validatorAddress(bytes), publicKey };
}

/** Identity from `priv_validator_key.json`. Throws KEY_FILE_INVALID. */
export function loadValidatorIdentity(file: string): ValidatorIdentity {
  return parseValidatorIdentity(readText(file), file);
}

/**
 * Seed of the key in `priv_validator_key.json`, 32 bytes; the file holds seed and public key, 64.
 * @throws KEY_FILE_INVALID
 */
export function loadValidatorSeed(file: string): Uint8Array {
  const { value } = parseKeyFile(readText(file), file, nodeKeyFile).priv_key;
  const bytes = Buffer.from(value, "base64");
  if (bytes.length !== 64) {
    throw new KeyFileError("KEY_FILE_INVALID", `cannot use ${file}: the key is not 64 bytes`);
  }
  return bytes.subarray(0, 32);
}

/**
 * Node id from `node_key.json`: 40 hex digits of SHA-256 of the public key (D24). The file holds
 * seed and public key, 64 bytes. Throws KEY_FILE_INVALID.
 */
export function loadNodeId(file: string): string {
  const { value } = parseKeyFile(readText(file), file, nodeKeyFile).priv_key;
  const bytes = Buffer.from(value, "base64");
  if (bytes.length !== 64) {
    throw new KeyFileError("KEY_FILE_INVALID", `cannot use ${file}: the key is not 64 bytes`);
  }
  return validatorAddress(bytes.subarray(32)).slice(2);
}
