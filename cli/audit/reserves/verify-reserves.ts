/** Checks a file of reserves with nothing but the genesis: no network, no clock, no node. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { recoverPersonalMessage } from "../../../chain/signing/personal-message.js";
import { EMPTY_CODE_HASH, type Hash32 } from "../../../chain/hex.js";
import type { Atoken } from "../../../chain/units.js";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { notProven, type ProvenBlock, provenAccount, verifyBlock } from "../balance/verify.js";
import type { LiabilityFile } from "./liability-file.js";
import {
  type ReserveAccount,
  type ReservesFile,
  reservesText,
  signsItself,
} from "./reserves-file.js";
import { liabilitiesRoot, type SumRoot } from "./sum-tree.js";

/** What a file proves. */
export interface ProvenReserves {
  readonly block: ProvenBlock;
  readonly accounts: number;
  readonly wallets: number;
  /** Whether wallets signed for which accounts these are, and of which ledger; not in the first format. */
  readonly areAccountsSigned: boolean;
  /** Sum of all accounts' coins. */
  readonly reservesAtoken: Atoken;
  /**
   * What lies in wallets of it, whose own keys signed. The rest lies on deposit addresses: that they are the
   * exchange's is its word alone.
   */
  readonly signedAtoken: Atoken;
  /** What is owed in the chain's own coin. */
  readonly owedAtoken: Atoken;
  readonly isCovered: boolean;
  /** Of the other assets: their reserves are not in the chain's state in a form that proves them. */
  readonly otherLiabilities: readonly SumRoot[];
  readonly liabilitiesRoot: string;
  readonly nonce: string;
}

/** Hundreds of thousands of accounts take minutes. */
export interface LongWork {
  readonly signal?: AbortSignal | undefined;
  /** Told of so many accounts that are verified. */
  readonly onProgress?: ((done: number, of: number) => void) | undefined;
}

/**
 * Verifies block, accounts and signatures.
 * @throws NOT_PROVEN naming the step that does not hold; the signal's reason
 */
export async function verifyReserves(
  file: ReservesFile,
  genesis: Genesis,
  work: LongWork = {},
): Promise<ProvenReserves> {
  const { whenSigned, unsigned } = await verifyDraft(file, genesis, work);
  if (unsigned.length === 0) return whenSigned;
  throw notProven(`it is a draft, NOT signed by ${namesOf(unsigned)}`);
}

/** A file that wallets have to sign still. */
export interface VerifiedDraft {
  /** Nothing of it is proven as long as a wallet is in `unsigned`. */
  readonly whenSigned: ProvenReserves;
  readonly unsigned: readonly Address[];
}

/**
 * Verifies block, accounts and those signatures that are there.
 * @throws NOT_PROVEN naming the step that does not hold; the signal's reason
 */
export async function verifyDraft(
  file: ReservesFile,
  genesis: Genesis,
  { signal, onProgress }: LongWork = {},
): Promise<VerifiedDraft> {
  const block = verifyBlock(file, genesis);
  const seen = new Set<Address>();
  let [reservesAtoken, signedAtoken] = [0n, 0n];
  for (const account of file.accounts) {
    // An account that is named twice would be counted twice.
    if (seen.has(account.address)) throw notProven(`${account.address} is named twice`);
    seen.add(account.address);
    const { address } = account;
    const accountProof = file.nodes.wayTo(address, block.stateRoot);
    const { balanceAtoken, codeHash } = await provenAccount(
      { address, accountProof },
      block.stateRoot,
    );
    if (!signsItself(account)) assertHasKey(address, codeHash, genesis);
    onProgress?.(seen.size, file.accounts.length);
    const pause = breathe(signal);
    if (pause !== undefined) await pause;
    reservesAtoken += balanceAtoken;
    if (signsItself(account)) signedAtoken += balanceAtoken;
  }
  const wallets = file.accounts.filter(signsItself);
  const unsigned = await missingSignatures(file, { wallets, text: reservesText(file) }, signal);
  const native = file.liabilities.find(({ asset }) => asset === NATIVE_ASSET);
  const owedAtoken = native?.sumUnits ?? 0n;
  const whenSigned = {
    block,
    accounts: file.accounts.length,
    wallets: wallets.length,
    areAccountsSigned: file.format !== "causeway-reserves/1",
    reservesAtoken,
    signedAtoken,
    owedAtoken,
    isCovered: reservesAtoken >= owedAtoken,
    otherLiabilities: file.liabilities.filter(({ asset }) => asset !== NATIVE_ASSET),
    liabilitiesRoot: liabilitiesRoot(file.liabilities),
    nonce: file.nonce,
  };
  return { whenSigned, unsigned };
}

/** Below 2^16: nobody's, precompiled contracts, the modules' accounts. No key has an address like these. */
const LOW_ADDRESS = /^0x0{36}/;

/**
 * A deposit address signs nothing. Coins that no key can move are nobody's reserves, whoever calls them so:
 * those of the chain's own accounts, and of contracts. A deposit address comes from the exchange's xpub, and
 * never has code.
 */
function assertHasKey(address: Address, codeHash: Hash32, { params }: Genesis): void {
  const { feeCollector, treasury, validatorsPool, developmentFund, burnAddress } = params;
  const own = [feeCollector, treasury, validatorsPool, developmentFund, burnAddress];
  const name = toChecksumAddress(address);
  if (own.includes(address) || LOW_ADDRESS.test(address)) {
    throw notProven(`${name} is an account of the chain itself, whose coins no key can move`);
  }
  if (codeHash !== EMPTY_CODE_HASH) {
    throw notProven(`${name} is a contract, whose coins no key can move`);
  }
}

/**
 * Every wallet signs, once, and nobody else: what is owed stands on nothing but these signatures. A file has
 * as many wallets and signatures as whoever wrote it likes.
 * @param check.wallets each once
 * @returns whose signatures are not there
 * @throws NOT_PROVEN for one that is wrong; the signal's reason
 */
export async function missingSignatures(
  { signatures }: Pick<ReservesFile, "signatures">,
  check: { readonly wallets: readonly ReserveAccount[]; readonly text: string },
  signal?: AbortSignal,
): Promise<readonly Address[]> {
  const { wallets, text } = check;
  if (wallets.length === 0) throw notProven("no wallet signed for it");
  // A signature too many is one whose wallet was taken out of the accounts, or made another one.
  if (signatures.length > wallets.length) {
    throw notProven(`${signatures.length} signed, and ${wallets.length} wallets are named`);
  }
  const left = new Set(wallets.map(({ address }) => address));
  for (const { address, signature } of signatures) {
    // One that is there twice, or a stranger's, belongs to no wallet that is left.
    if (!left.delete(address)) {
      throw notProven(`${toChecksumAddress(address)} signed, and is no wallet, or signed before`);
    }
    if (recoverPersonalMessage(text, signature) !== address) {
      throw notProven(`${toChecksumAddress(address)} did not sign for this block and these roots`);
    }
    const pause = breathe(signal);
    if (pause !== undefined) await pause;
  }
  return [...left];
}

/** Wallets that are named one by one. */
const MAX_NAMED = 20;

/** Addresses of wallets for people; of many only the first are named. */
export function namesOf(wallets: readonly Address[]): string {
  const named = wallets.slice(0, MAX_NAMED).map(toChecksumAddress).join(", ");
  const more = wallets.length - MAX_NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}

/**
 * Verifies that a customer's file is of a proof of reserves: of its block, its ledger and the roots
 * that were signed.
 * @throws NOT_PROVEN
 */
export function assertPartOf(
  liability: LiabilityFile,
  of: {
    readonly reserves: Pick<ReservesFile, "ledgerId">;
    readonly proven: Pick<ProvenReserves, "block" | "liabilitiesRoot">;
  },
): void {
  const { block, liabilitiesRoot: signed } = of.proven;
  if (liabilitiesRoot(liability.roots) !== signed) {
    throw notProven("the wallets signed for other liabilities");
  }
  if (liability.height !== block.height || liability.blockHash !== block.blockHash) {
    throw notProven("the reserves are those of another block");
  }
  if (liability.ledgerId !== of.reserves.ledgerId) {
    throw notProven("the reserves are those of another ledger");
  }
}
