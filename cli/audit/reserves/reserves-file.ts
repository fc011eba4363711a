/**
 * The file that proves reserves: the way from the genesis to one block, the accounts of the exchange with
 * the nodes that prove them in that block's state, the roots of what it owes, and the wallets' signatures
 * over all of it. Balances are not written down: whoever checks the file computes them.
 *
 * JSON lines: a head, which counts the others; the nodes, each once; the accounts. An exchange has hundreds
 * of thousands of accounts, of which most share all nodes but the last one or two.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { LightBlock } from "../../../chain/consensus/light.js";
import { type Address, parseAddress } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { bytesToHex, type Height } from "../../../chain/hex.js";
import { MAX_TOKENS } from "../../../chain/token-list.js";
import { OWN_ROLES, type OwnAddress } from "../../../ledger/books/liabilities.js";
import { bytesSchema, type LightBlockJson, MAX_PATH_HEADERS } from "../balance/bundle.js";
import type { StateNodes } from "./state-nodes.js";
import { liabilitiesRoot, MAX_LEVELS, type SumRoot } from "./sum-tree.js";

/** First field of the file, in the form that is written. */
export const RESERVES_FORMAT = "causeway-reserves/3";

/**
 * Forms of former releases. In the first one wallets did not sign for which accounts these are, nor of which
 * ledger: whoever passed one on may have put others' accounts to it.
 */
export const FORMER_FORMATS = ["causeway-reserves/1", "causeway-reserves/2"] as const;

/** Whether an account signs by its own key; those of deposit addresses sign nothing. */
export function signsItself({ role }: Pick<ReserveAccount, "role">): boolean {
  return role !== "deposit-address";
}

/** Accounts of one file: whoever checks it holds some kilobyte for each. */
export const MAX_ACCOUNTS = 2_000_000;

/** Some four for each account in a state of billions. */
const MAX_NODES = 8_000_000;

/** A branch with sixteen children has 532 bytes, a leaf fewer. */
const MAX_NODE_CHARACTERS = 2 + 2 * 1_024;

/** The chain's own coin, and every token that a list may have. */
const MAX_ASSETS = 1 + MAX_TOKENS;

/** An account of the exchange. */
export interface ReserveAccount {
  readonly address: Address;
  readonly role: OwnAddress["role"];
}

/** What a file says, before any of it is believed. */
export interface ReservesFile {
  readonly format: typeof RESERVES_FORMAT | (typeof FORMER_FORMATS)[number];
  readonly chainId: string;
  readonly ledgerId: string;
  readonly height: Height;
  readonly path: readonly LightBlock[];
  readonly header: Uint8Array;
  readonly accounts: readonly ReserveAccount[];
  /** Of the state's trie: the ways to all accounts. */
  readonly nodes: StateNodes;
  readonly liabilities: readonly SumRoot[];
  /** Chosen by the auditor: signatures are of his day. */
  readonly nonce: string;
  readonly signatures: readonly { readonly address: Address; readonly signature: string }[];
}

/** What a file is written from; `path` as it was answered. */
export interface ReservesContents extends Omit<ReservesFile, "format" | "path"> {
  readonly path: readonly LightBlockJson[];
}

const address = z.string().transform((text) => parseAddress(text));
const units = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,77})$/)
  .transform(BigInt);

/** An asset or a customer, as the ledger names them: what is hashed has them between spaces and lines. */
export const nameSchema = z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/);

/** A root as files write it. */
const rootSchema = z.object({
  asset: nameSchema,
  levels: z.int().min(0).max(MAX_LEVELS),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  sumUnits: units,
});

/** Roots of all assets, each once. */
export const rootsSchema = z
  .array(rootSchema)
  .max(MAX_ASSETS)
  .refine((roots) => new Set(roots.map(({ asset }) => asset)).size === roots.length);

/** A part of the text that wallets sign: a line of it. */
const line = z.string().regex(/^[\x20-\x7e]{0,100}$/);

/** Fields of every form. */
export const proofFields = {
  chainId: z.string().max(50),
  ledgerId: line,
  height: z.int().min(0),
  path: z
    .array(z.object({ commit: z.unknown(), validators: z.array(z.unknown()).min(1).max(100) }))
    .min(1)
    .max(MAX_PATH_HEADERS),
  header: bytesSchema,
  liabilities: rootsSchema,
  nonce: line,
  signatures: z.array(z.object({ address, signature: z.string().max(200) })).max(MAX_ACCOUNTS),
};

/** An account as files write it. */
export const accountSchema = z.object({ address, role: z.enum(OWN_ROLES) });

/** The first line. */
export const headSchema = z.object({
  format: z.literal(RESERVES_FORMAT),
  nodes: z.int().min(0).max(MAX_NODES),
  accounts: z.int().min(0).max(MAX_ACCOUNTS),
  ...proofFields,
});

/** A line of a node. */
export const nodeSchema = z.string().max(MAX_NODE_CHARACTERS).pipe(bytesSchema);

/**
 * The lines of the file, each with its end. Fields are in one order, wherever the contents come from: a proof
 * that was signed elsewhere is the same file.
 */
export function* encodeReserves(contents: ReservesContents): Generator<string> {
  const { ledgerId, nonce, chainId, height, nodes, accounts } = contents;
  const signatures = contents.signatures.map(({ address: wallet, signature }) => {
    return { address: wallet, signature };
  });
  yield lineOf({
    format: RESERVES_FORMAT,
    nodes: nodes.size,
    accounts: accounts.length,
    ledgerId,
    nonce,
    chainId,
    height,
    signatures,
    header: bytesToHex(contents.header),
    liabilities: contents.liabilities.map(rootJson),
    path: contents.path.map(({ commit, validators }) => ({ commit, validators })),
  });
  for (const node of nodes.values()) yield lineOf(bytesToHex(node));
  for (const { address: account, role } of accounts) yield lineOf({ address: account, role });
}

function lineOf(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

/** A root with its sum as text. */
export function rootJson({ hash, asset, levels, sumUnits }: SumRoot) {
  return { hash, asset, levels, sumUnits: sumUnits.toString() };
}

/** What wallets sign for: all of a file but their signatures, and the ways that prove it. */
export type SignedReserves = Omit<ReservesFile, "path" | "nodes" | "signatures">;

/**
 * What a wallet signs (EIP-191): the block, the accounts, what is owed by which ledger, and the auditor's
 * nonce. A signature of another day, chain, sum or list of accounts is another text.
 */
export function reservesText(signed: SignedReserves): string {
  const { chainId, height, header, accounts, liabilities, nonce } = signed;
  const block = [`chain: ${chainId}`, `height: ${height}`, `block: ${keccak256Hex(header)}`];
  const owed = [`liabilities: ${liabilitiesRoot(liabilities)}`, `nonce: ${nonce}`];
  if (signed.format === "causeway-reserves/1") {
    const words = "we hold the key of this address, and owe what this root stands for.";
    return [`${signed.format}: ${words}`, ...block, ...owed].join("\n");
  }
  return [
    `${signed.format}: we hold the keys of these accounts, and owe what this root stands for.`,
    ...block,
    `ledger: ${signed.ledgerId}`,
    `accounts: ${accounts.length}, ${accountsHash(accounts)}`,
    ...owed,
  ].join("\n");
}

/** One hash for the accounts, in the order of their addresses, with what each is. 64 hex digits. */
function accountsHash(accounts: SignedReserves["accounts"]): string {
  const lines = accounts.map(({ address: account, role }) => `${account} ${role}`).toSorted();
  const text = ["causeway-reserves-accounts/1", ...lines].join("\n");
  return createHash("sha256").update(text).digest("hex");
}
