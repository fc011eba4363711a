/** Validator key, its state file and the node key, in CometBFT's own JSON shapes. */
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";

const PRIVATE_KEY_TYPE = "tendermint/PrivKeyEd25519";
const PUBLIC_KEY_TYPE = "tendermint/PubKeyEd25519";

/** Ed25519 key pair, raw: 32-byte seed and 32-byte public key. */
interface Ed25519Pair {
  readonly seed: Buffer;
  readonly publicKey: Buffer;
}

/** Text of a new `priv_validator_key.json`. */
export function createValidatorKeyFile(): string {
  const pair = createPair();
  return toText({
    address: addressBytes(pair.publicKey).toString("hex").toUpperCase(),
    pub_key: { type: PUBLIC_KEY_TYPE, value: pair.publicKey.toString("base64") },
    priv_key: encodePrivate(pair),
  });
}

/** A new `node_key.json` and the node id that peers know it by. */
export interface NewNodeKey {
  readonly text: string;
  /** 40 hex digits: SHA-256(public key)[0..20] (D24). */
  readonly nodeId: string;
}

/** A new node key. */
export function createNodeKey(): NewNodeKey {
  const pair = createPair();
  const nodeId = addressBytes(pair.publicKey).toString("hex");
  return { text: toText({ priv_key: encodePrivate(pair) }), nodeId };
}

/** Text of `priv_validator_state.json` of a key that has signed nothing yet. */
export function createValidatorStateFile(): string {
  return toText({ height: "0", round: 0, step: 0 });
}

function createPair(): Ed25519Pair {
  const { privateKey } = generateKeyPairSync("ed25519");
  const { d, x } = privateKey.export({ format: "jwk" });
  assert(d !== undefined && x !== undefined, "an ed25519 key has both halves (RFC 8037)");
  return { seed: Buffer.from(d, "base64url"), publicKey: Buffer.from(x, "base64url") };
}

/** CometBFT writes the private key as seed and public key, 64 bytes. */
function encodePrivate(pair: Ed25519Pair): { type: string; value: string } {
  const value = Buffer.concat([pair.seed, pair.publicKey]).toString("base64");
  return { type: PRIVATE_KEY_TYPE, value };
}

/** First 20 bytes of SHA-256 of the public key: CometBFT's address of a validator or node. */
function addressBytes(publicKey: Uint8Array): Buffer {
  return createHash("sha256").update(publicKey).digest().subarray(0, 20);
}

function toText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
