/** The node's ed25519 key: `node_key.json` in CometBFT's shape, and node ids (D24). */
import { createPrivateKey, createPublicKey, randomBytes } from "node:crypto";
import { z } from "zod";
import { sha256 } from "../../chain/hashes.js";
import { errorCode, errorMessage } from "../../chain/errors.js";
import { readSecretFile, writeNewSecretFile } from "../../runtime/config/secret-file.js";
import { P2pError } from "./p2p-error.js";

/** 40 lower-case hex digits: the first 20 bytes of SHA-256 of an ed25519 public key. */
export type NodeId = string & { readonly __brand: "NodeId" };

/** The node's identity on the network. */
export interface NodeKey {
  readonly nodeId: NodeId;
  /** 32 bytes; secret. */
  readonly seed: Uint8Array;
}

const SEED_BYTES = 32;
const KEY_BYTES = 64;

/** Prefix of an ed25519 seed in PKCS #8, the only form in which Node reads one. */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

const keyFile = z.object({
  priv_key: z.object({ type: z.literal("tendermint/PrivKeyEd25519"), value: z.base64() }),
});

/** Untrusted text to a node id. Throws PEER_ADDRESS_INVALID. */
export function parseNodeId(text: string): NodeId {
  const lower = text.toLowerCase();
  if (!/^[0-9a-f]{40}$/.test(lower)) {
    throw new P2pError("PEER_ADDRESS_INVALID", "a node id has 40 hex digits");
  }
  return lower as NodeId;
}

/** Node id of a 32-byte ed25519 public key. */
export function nodeIdOf(publicKey: Uint8Array): NodeId {
  return Buffer.from(sha256(publicKey).subarray(0, 20)).toString("hex") as NodeId;
}

/** The identity of a 32-byte seed. */
export function nodeKeyOf(seed: Uint8Array): NodeKey {
  return { nodeId: nodeIdOf(publicKeyOf(seed)), seed };
}

/**
 * Reads the key file; makes one where there is none, as a home that was copied without it expects.
 * @throws NODE_KEY_INVALID
 */
export function openNodeKey(file: string): NodeKey {
  const text = readKeyFile(file) ?? createKeyFile(file);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined; // Node's message could quote the text, and with it the key.
  }
  const value = keyFile.safeParse(parsed).data?.priv_key.value;
  const bytes = Buffer.from(value ?? "", "base64");
  const seed = Uint8Array.from(bytes.subarray(0, SEED_BYTES));
  const isKey = bytes.length === KEY_BYTES && bytes.subarray(SEED_BYTES).equals(publicKeyOf(seed));
  if (!isKey) throw invalidKey(`${file} is not an ed25519 key in CometBFT's shape`);
  return nodeKeyOf(seed);
}

function readKeyFile(file: string): string | undefined {
  try {
    return readSecretFile(file);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (errorCode(cause) === "ENOENT") return undefined;
    throw invalidKey(errorMessage(error), error);
  }
}

function createKeyFile(file: string): string {
  const seed = randomBytes(SEED_BYTES);
  const value = Buffer.concat([seed, publicKeyOf(seed)]).toString("base64");
  const text = JSON.stringify({ priv_key: { type: "tendermint/PrivKeyEd25519", value } });
  try {
    // Another process may have made one in the meantime: what the file holds counts.
    return writeNewSecretFile(file, text) ? text : readSecretFile(file);
  } catch (error) {
    throw invalidKey(errorMessage(error), error);
  }
}

function publicKeyOf(seed: Uint8Array): Buffer {
  const der = Buffer.concat([PKCS8_PREFIX, seed]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32);
}

function invalidKey(message: string, cause?: unknown): P2pError {
  return new P2pError("NODE_KEY_INVALID", message, { cause });
}
