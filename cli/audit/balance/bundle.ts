/**
 * The file that proves a balance by itself: consensus headers from one that the genesis validators
 * signed up to the one above the height, the EVM header of the height, and the proof of the account
 * in its state. All of it as nodes answer it, so that other programs can check it, too.
 */
import { z } from "zod";
import type { LightBlock } from "../../../chain/consensus/light.js";
import { type Address, parseAddress } from "../../../chain/address.js";
import { type Height, hexToBytes, parseHex } from "../../../chain/hex.js";
import {
  parseSignedHeader,
  parseValidatorsPage,
  validatorSetOf,
} from "../../../node/statesync/light/light-json.js";
import { schemaFaultText } from "../../../runtime/config/schema-faults.js";
import { AuditError } from "../errors.js";

/** First field of the file; a form that older verifiers cannot read gets another one. */
const FORMAT = "causeway-balance-proof/1";

/** More headers than any bisection visits. */
export const MAX_PATH_HEADERS = 1_000;

/** A proof of an account is as deep as the trie: 64 nibbles at most. */
const MAX_PROOF_NODES = 65;

/** Longest file that is read: a thousand headers of a hundred validators stay below. */
export const MAX_BUNDLE_BYTES = 64 * 1024 * 1024;

/** A header, its commit and its validators, as a node's consensus RPC answers them. */
export interface LightBlockJson {
  /** Result of `commit`. */
  readonly commit: unknown;
  /** Results of `validators`, page by page. */
  readonly validators: readonly unknown[];
}

/** What a bundle says, before any of it is believed. */
export interface BalanceBundle {
  readonly chainId: string;
  readonly address: Address;
  readonly height: Height;
  /** Oldest first; the last is of `height + 1`. */
  readonly path: readonly LightBlock[];
  /** RLP of the EVM header of `height`. */
  readonly header: Uint8Array;
  /** Nodes of the account trie, root first. */
  readonly accountProof: readonly Uint8Array[];
}

/** What a bundle is written from; `path` as it was answered. */
export interface BundleContents extends Pick<BalanceBundle, "chainId" | "address" | "height"> {
  readonly path: readonly LightBlockJson[];
  readonly header: Uint8Array;
  readonly accountProof: readonly Uint8Array[];
}

/** Bytes as files of proofs write them: hex with its prefix. */
export const bytesSchema = z.string().transform((text) => hexToBytes(parseHex(text)));

const bundle = z.object({
  format: z.literal(FORMAT),
  chainId: z.string().max(50),
  address: z.string().transform((text) => parseAddress(text)),
  height: z.int().min(0),
  path: z
    .array(z.object({ commit: z.unknown(), validators: z.array(z.unknown()).min(1).max(100) }))
    .min(1)
    .max(MAX_PATH_HEADERS),
  header: bytesSchema,
  accountProof: z.array(bytesSchema).max(MAX_PROOF_NODES),
});

/** The text of the file. */
export function encodeBundle(contents: BundleContents): string {
  const hex = (value: Uint8Array) => `0x${Buffer.from(value).toString("hex")}`;
  const document = {
    format: FORMAT,
    ...contents,
    header: hex(contents.header),
    accountProof: contents.accountProof.map(hex),
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

/**
 * The file's text as typed values; nothing in it is checked against anything yet.
 * @throws BUNDLE_UNREADABLE naming the field
 */
export function parseBundle(text: string): BalanceBundle {
  try {
    const parsed = bundle.parse(JSON.parse(text));
    return { ...parsed, path: parsed.path.map(parseLightBlock) };
  } catch (cause) {
    const message = `The file is no balance proof of this form (${FORMAT}): ${schemaFaultText(cause)}.`;
    throw new AuditError("BUNDLE_UNREADABLE", message, { cause });
  }
}

/**
 * One header of the path.
 * @throws ZodError, INVALID_VALIDATORS; RangeError when pages belong to different heights
 */
export function parseLightBlock(json: LightBlockJson): LightBlock {
  const signed = parseSignedHeader(json.commit);
  const pages = json.validators.map(parseValidatorsPage);
  if (pages.some((page) => page.height !== signed.header.height)) {
    throw new RangeError("the validators are those of another height");
  }
  return { ...signed, validators: validatorSetOf(pages.flatMap((page) => page.validators)) };
}
