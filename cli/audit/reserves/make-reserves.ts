/** Makes a proof of reserves and the files of the customers, all of one block and one look at the books. */
import { randomBytes } from "node:crypto";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { signPersonalMessage } from "../../../chain/signing/personal-message.js";
import type { WalletKey } from "../../../chain/signing/keystore.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { present } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import type { LiabilityBooks } from "../../../ledger/books/liabilities.js";
import {
  type CollectedBlock,
  type CollectSource,
  collectBlock,
  collectProofs,
  withCoins,
} from "../balance/collect.js";
import { provenAccount } from "../balance/verify.js";
import { AuditError } from "../errors.js";
import type { LiabilityFile } from "./liability-file.js";
import {
  MAX_ACCOUNTS,
  type ReserveAccount,
  type ReservesContents,
  RESERVES_FORMAT,
  reservesText,
  signsItself,
} from "./reserves-file.js";
import { StateNodes } from "./state-nodes.js";
import { buildTree, type LiabilityLeaf, MAX_UNITS } from "./sum-tree.js";

/** Accounts that are looked at together. */
const ACCOUNTS_AT_ONCE = 500;

/** What was made. */
export interface MadeReserves {
  readonly contents: ReservesContents;
  /** One for each liability. */
  readonly liabilities: readonly MadeLiability[];
  /** Tokens that the proof says nothing of. */
  readonly leftOut: readonly LeftOut[];
  /** Cold storage whose keys are elsewhere: what it holds is not in the proof. */
  readonly coldLeftOut: readonly Address[];
  /** Wallets that were retired since and whose keys are elsewhere: what they held is not in the proof. */
  readonly retiredLeftOut: readonly Address[];
  /** Wallets that somebody left out: what they hold is not in the proof. */
  readonly unsignedLeftOut: readonly Address[];
  /** Deposit addresses that hold nothing in the block: there is nothing to prove of them. */
  readonly emptyLeftOut: number;
}

/** What one customer gets. */
export interface MadeLiability extends Pick<LiabilityLeaf, "asset" | "customerId"> {
  /** Made when its turn comes: of a million files no more than one is held. */
  readonly file: () => LiabilityFile;
}

/** A token of which more is owed than there can be of any: its contract lies, and no sum holds it. */
export interface LeftOut {
  readonly asset: string;
  /** Above 2^256 - 1. */
  readonly units: bigint;
}

/** What both are made from. */
export interface ReservesParts {
  readonly source: CollectSource;
  readonly books: Omit<LiabilityBooks, "openPayments">;
  /** Keys of the wallets that sign; further ones are passed over. */
  readonly keys: readonly WalletKey[];
  /** Keys that somebody has named, each of which has to sign. */
  readonly named?: readonly WalletKey[];
  /** Wallets and cold storage that are not in the proof. */
  readonly leaveOut?: readonly Address[];
  /** Wallets and cold storage that are in it, and whose signatures somebody puts to it. */
  readonly elsewhere?: readonly Address[];
  readonly nonce: string;
  /** Told of so many accounts whose proofs are there. */
  readonly onProgress?: ((done: number, of: number) => void) | undefined;
}

/**
 * Collects the proofs, builds the trees and signs with the keys that are here.
 * @throws BAD_OPTION where a hot wallet's key is missing, or nobody signs, or a key that is named or a
 * wallet that is left out is of no account; OTHER_CHAIN where the books are not about the node's chain;
 * BAD_RANGE where the node has not their last block; what `collectProofs` throws
 */
export async function makeReserves(parts: ReservesParts): Promise<MadeReserves> {
  const { source, books, named = [], elsewhere = [], nonce } = parts;
  const { ledgerId, height } = books;
  assertKnown(named, books);
  const keys = [...parts.keys, ...named].filter(({ address }) => !elsewhere.includes(address));
  const unsignedLeftOut = assertSigners({ ...parts, keys });
  await assertSameChain(source, books);
  const block = await collectBlock({ ...source, height });
  const { addresses, coldLeftOut, retiredLeftOut } = await provable({ ...parts, keys }, height);
  if (!addresses.some(signsItself)) throw new AuditError("BAD_OPTION", NOBODY_SIGNS);
  const { accounts, nodes } = await collectAccounts(parts, block, addresses);
  const { trees, leftOut } = treesOf(books);
  const roots = trees.map(({ tree }) => tree.root);
  const signed = { ledgerId, nonce, ...block, accounts, nodes, liabilities: roots };
  const text = reservesText({ format: RESERVES_FORMAT, ...signed });
  const signers = accounts.filter(
    (account) => signsItself(account) && !elsewhere.includes(account.address),
  );
  const signatures = signers.map(({ address }) => {
    const key = present(
      keys.find((one) => one.address === address),
      "key of a wallet",
    );
    return { address, signature: signPersonalMessage(text, key.privateKey) };
  });
  const head = { ledgerId, height, blockHash: keccak256Hex(block.header), roots };
  return {
    contents: { ...signed, signatures },
    liabilities: trees.flatMap(({ leaves, tree }) =>
      leaves.map((leaf, place) => ({
        asset: leaf.asset,
        customerId: leaf.customerId,
        file: () => ({ ...leaf, ...head, steps: tree.proofOf(place) }),
      })),
    ),
    leftOut,
    coldLeftOut,
    retiredLeftOut,
    unsignedLeftOut,
    emptyLeftOut: addresses.length - accounts.length,
  };
}

/**
 * Which accounts may be in the proof. For a retired wallet nobody signs any more, and mostly it is empty:
 * with coins in an older block it counts where its key is here, or said to sign elsewhere. Cold storage whose
 * key does neither does not count.
 */
async function provable(
  { source, books, keys, named = [], leaveOut = [], elsewhere = [] }: ReservesParts,
  height: Height,
): Promise<
  Pick<MadeReserves, "coldLeftOut" | "retiredLeftOut"> & {
    readonly addresses: readonly ReserveAccount[];
  }
> {
  const isOf = (some: readonly WalletKey[], { address }: ReserveAccount) =>
    elsewhere.includes(address) || some.some((one) => one.address === address);
  const own = books.addresses.filter(({ address }) => !leaveOut.includes(address));
  const retired = own.filter(({ isRetired }) => isRetired === true);
  const holding = new Set(await withCoins(source, height, retired));
  const asked = own.filter(
    (account) => account.isRetired !== true || holding.has(account) || isOf(named, account),
  );
  const left = asked.filter(
    (account) =>
      (account.role === "cold-storage" || account.isRetired === true) && !isOf(keys, account),
  );
  const leftOut = (role: ReserveAccount["role"]) =>
    left.filter((account) => account.role === role).map(({ address }) => address);
  return {
    addresses: asked
      .filter((account) => !left.includes(account))
      .map(({ address, role }) => ({ address, role })),
    coldLeftOut: leftOut("cold-storage"),
    retiredLeftOut: leftOut("hot-wallet"),
  };
}

/**
 * The accounts that are in the proof, with the nodes of the state that prove them. A deposit address whose
 * coins have been swept has nothing to prove; a wallet signs, whatever it holds.
 * @throws BAD_OPTION where more accounts hold something than fit one file
 */
async function collectAccounts(
  { source, onProgress }: Pick<ReservesParts, "source" | "onProgress">,
  { height }: CollectedBlock,
  all: readonly ReserveAccount[],
): Promise<Pick<ReservesContents, "accounts" | "nodes">> {
  const nodes = new StateNodes();
  const accounts: ReserveAccount[] = [];
  let done = 0;
  const tell = (count: number) => onProgress?.((done += count), all.length);
  for (let start = 0; start < all.length; start += ACCOUNTS_AT_ONCE) {
    const part = all.slice(start, start + ACCOUNTS_AT_ONCE);
    const wanted = await worthProving(source, height, part);
    tell(part.length - wanted.length);
    const roles = new Map(wanted.map(({ address, role }) => [address, role]));
    for await (const { address, accountProof } of collectProofs(source, height, [
      ...roles.keys(),
    ])) {
      const account = { address, role: roles.get(address) ?? "deposit-address" };
      tell(1);
      if (!signsItself(account) && !(await holdsCoins(address, accountProof))) continue;
      if (accounts.length === MAX_ACCOUNTS) throw tooMany();
      accounts.push(account);
      for (const node of accountProof) nodes.add(node);
    }
  }
  return { accounts, nodes };
}

/** Wallets, and what holds coins: most deposit addresses of an exchange that sweeps hold nothing. */
async function worthProving(
  source: CollectSource,
  height: Height,
  accounts: readonly ReserveAccount[],
): Promise<readonly ReserveAccount[]> {
  const deposits = accounts.filter((account) => !signsItself(account));
  const held = new Set(await withCoins(source, height, deposits));
  return accounts.filter((account) => signsItself(account) || held.has(account));
}

function tooMany(): AuditError {
  const message =
    `More than ${MAX_ACCOUNTS} accounts hold coins, and do not fit one file: have deposit ` +
    "addresses swept, and take a later block.";
  return new AuditError("BAD_OPTION", message);
}

/** By the node's own root, which whoever verifies the file holds against the block's. */
async function holdsCoins(address: Address, accountProof: readonly Uint8Array[]): Promise<boolean> {
  const root = keccak256Hex(accountProof[0] ?? new Uint8Array(0));
  const { balanceAtoken } = await provenAccount({ address, accountProof }, root);
  return balanceAtoken > 0n;
}

/** A key that signs nothing is of an account that somebody takes for proven. */
function assertKnown(named: readonly WalletKey[], { addresses }: ReservesParts["books"]): void {
  const stranger = named.find(({ address }) => !addresses.some((own) => own.address === address));
  if (stranger === undefined) return;
  const message =
    `The key of ${toChecksumAddress(stranger.address)} signs nothing: this ledger knows it neither ` +
    "as a wallet that is not retired nor as cold storage.";
  throw new AuditError("BAD_OPTION", message);
}

const NOBODY_SIGNS =
  "No wallet that is left has its key here: nobody would sign, and nothing would be proven. One whose key " +
  "lies in an HSM or with Web3Signer signs with --sign-elsewhere ADDRESS.";

/**
 * Every wallet that is not retired signs, here or elsewhere, unless somebody leaves it out: it is known
 * before the first of a million accounts is asked for.
 * @returns what is left out
 */
function assertSigners(parts: ReservesParts): readonly Address[] {
  const { books, keys, leaveOut = [], elsewhere = [] } = parts;
  const own = books.addresses.filter(signsItself);
  const stranger = [...leaveOut, ...elsewhere].find(
    (one) => !own.some(({ address }) => address === one),
  );
  if (stranger !== undefined) {
    const message = `${toChecksumAddress(stranger)} is neither a wallet of this ledger nor cold storage.`;
    throw new AuditError("BAD_OPTION", message);
  }
  assertSaidOnce(parts);
  const signing = [...leaveOut, ...elsewhere, ...keys.map(({ address }) => address)];
  const missing = own.filter(
    ({ address, role, isRetired }) =>
      role === "hot-wallet" && isRetired !== true && !signing.includes(address),
  );
  if (missing.length > 0) {
    const names = missing.map(({ address }) => toChecksumAddress(address)).join(", ");
    const message =
      `No key is here of ${names}: name its keystore with --keystore FILE, have it sign a draft with ` +
      "--sign-elsewhere ADDRESS, or leave it out with --leave-out ADDRESS, and nothing that it holds is " +
      "proven.";
    throw new AuditError("BAD_OPTION", message);
  }
  return [...new Set(leaveOut)];
}

/** Of two words about one wallet one would not be heard. */
function assertSaidOnce({ named = [], leaveOut = [], elsewhere = [] }: ReservesParts): void {
  const ofKeystores = named.map(({ address }) => address);
  for (const [some, others, what] of [
    [ofKeystores, leaveOut, "is left out, and its keystore is named"],
    [ofKeystores, elsewhere, "signs elsewhere, and its keystore is named"],
    [elsewhere, leaveOut, "signs elsewhere, and is left out"],
  ] as const) {
    const both = some.find((one) => others.includes(one));
    if (both === undefined) continue;
    throw new AuditError("BAD_OPTION", `${toChecksumAddress(both)} ${what}.`);
  }
}

/** Books of another chain, or of a fork, have another block where they stand. */
async function assertSameChain(
  { node }: Pick<CollectSource, "node">,
  { booked }: Pick<LiabilityBooks, "booked">,
): Promise<void> {
  const head = await node.headHeight();
  if (head < booked.height) {
    const message = `The books are at block ${booked.height}, and the node has none above ${head} yet.`;
    throw new AuditError("BAD_RANGE", message);
  }
  const [header] = await node.rawHeaders([booked.height]);
  const found = header === undefined ? undefined : keccak256Hex(header);
  if (found === booked.blockHash) return;
  const message =
    `The books are about another chain than the node's: their last block, ${booked.height}, is ` +
    `${booked.blockHash}, and the node's is ${found ?? "not there"}.`;
  throw new AuditError("OTHER_CHAIN", message);
}

/**
 * The trees of all assets of which a sum can be built. What a token's contract makes up must not hide what
 * is owed of the others: its own customers alone are given no file.
 */
function treesOf({ liabilities }: ReservesParts["books"]) {
  const assets = new Map<string, LiabilityLeaf[]>();
  for (const liability of liabilities) {
    const leaves = assets.get(liability.asset) ?? [];
    leaves.push({ ...liability, salt: randomHex() });
    assets.set(liability.asset, leaves);
  }
  const leftOut: LeftOut[] = [];
  for (const [asset, leaves] of assets) {
    const units = leaves.reduce((sum, leaf) => sum + leaf.units, 0n);
    if (units <= MAX_UNITS || asset === NATIVE_ASSET) continue;
    leftOut.push({ asset, units });
    assets.delete(asset);
  }
  const trees = [...assets].map(([asset, leaves]) => ({
    leaves,
    tree: buildTree(asset, leaves, randomHex),
  }));
  return { trees, leftOut };
}

function randomHex(): string {
  return randomBytes(32).toString("hex");
}
