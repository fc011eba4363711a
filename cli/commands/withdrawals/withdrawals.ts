/**
 * `causeway withdrawals list|show|cancel|freeze`: what is on its way, what is not to be paid any
 * more, and the kill switch of signing.
 */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { errorMessage } from "../../../chain/errors.js";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import { type CancelOutcome, cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { laterMigrations } from "../../../ledger/database.js";
import { LedgerError } from "../../../ledger/errors.js";
import { closeIfBehind } from "../../../ledger/guard/ledger-guard.js";
import { listSigners } from "../../../ledger/wallets/home-wallets.js";
import { type HotWallet, listWallets } from "../../../ledger/wallets/wallet.js";
import {
  freezeSigning,
  readFreeze,
  readSwitchCause,
  type SigningFreeze,
} from "../../../ledger/requests/signing-freeze.js";
import {
  isWithdrawalStatus,
  WITHDRAWAL_STATUSES,
} from "../../../ledger/requests/withdrawal-status.js";
import { toWithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import {
  findWithdrawal,
  listWithdrawals,
  type Withdrawal,
} from "../../../ledger/withdrawals/withdrawals.js";
import { amountText } from "../../amount-text.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { isOtherTables } from "../../../runtime/sql/sql-errors.js";
import { CliError } from "../../errors.js";
import { lookBeforeEnding } from "../../ledger/chain-look.js";
import { type LedgerAlone, TO_STOP, withLedgerAlone } from "../../ledger/ledger-alone.js";
import { toJson } from "../../command-context.js";
import type { LedgerCommand } from "../../ledger/ledger-tools.js";
import { lastIfFull, type PageOptions, readPage } from "../../list-page.js";
import { readApiReason } from "../ledger-decisions.js";
import { readWalletAddress } from "../wallets/wallet-argument.js";

/** Filters of `withdrawals list`, as typed. */
export interface ListWithdrawalsOptions extends PageOptions {
  readonly status?: string;
  readonly customer?: string;
}

/**
 * `withdrawals list`: the switches of wallets that are not retired, and withdrawals oldest first.
 * @returns 0, or 1 while signing is frozen
 */
export async function runListWithdrawals(
  command: LedgerCommand,
  options: ListWithdrawalsOptions,
): Promise<number> {
  const { status } = options;
  if (status !== undefined && !isWithdrawalStatus(status)) {
    throw new CliError("USAGE", `--status must be one of ${WITHDRAWAL_STATUSES.join(", ")}.`);
  }
  const { limit, after: afterPosition } = readPage(options);
  return withLedgerAlone(command, async (opened) => {
    const page = { customerId: options.customer, status, limit, afterPosition };
    const withdrawals = await listWithdrawals(opened.database, page);
    // Nobody signs for a retired wallet, whatever its switch says.
    const signing = walletsMeant(await opened.listWallets(), undefined);
    const switches = await readSwitches(opened.database, signing);
    if (command.json)
      command.print(toJson({ signing: summaryOf(switches), switches, withdrawals }));
    else {
      for (const line of switches.map(switchLine)) command.print(line);
      for (const withdrawal of withdrawals) command.print(rowOf(withdrawal));
      const next = lastIfFull(withdrawals, limit)?.position;
      if (next !== undefined) command.print(`more: --after ${next}`);
    }
    return summaryOf(switches).frozen ? 1 : 0;
  });
}

/**
 * `withdrawals show ID`: everything about one withdrawal.
 * @returns 0, or 1 when there is none
 */
export async function runShowWithdrawal(command: LedgerCommand, id: string): Promise<number> {
  return withLedgerAlone(command, async (opened) => {
    const withdrawal = await findWithdrawal(opened.database, toWithdrawalId(id));
    if (withdrawal === undefined) {
      if (command.json) command.print(toJson({ outcome: "unknown", withdrawal: null }));
      else command.print(`No withdrawal has the id ${id}.`);
      return 1;
    }
    if (command.json) command.print(toJson(withdrawal));
    else for (const line of detailsOf(withdrawal)) command.print(line);
    return 0;
  });
}

const CANCEL_SENTENCES: Readonly<Record<CancelOutcome, string>> = {
  done: "it is cancelled, or will be unless its payment is mined first",
  mined: "its payment is mined",
  ended: "it has ended without payment",
  unknown: "no withdrawal has this id",
};

/**
 * `withdrawals cancel ID`: at once before it has a nonce, else by a transaction on the same nonce.
 * @returns 0, or 1 when it is too late
 * @throws USAGE, and of `lookBeforeEnding`
 */
export async function runCancelWithdrawal(
  command: LedgerCommand,
  { id, reason }: { readonly id: string; readonly reason: string },
): Promise<number> {
  const words = readApiReason(reason);
  return withLedgerAlone(command, async (opened) => {
    await closeIfBehind(opened.database, command.home);
    await lookBeforeEnding(command, opened, toWithdrawalId(id));
    const outcome = await cancelWithdrawal(opened.database, toWithdrawalId(id), words);
    const withdrawal = await findWithdrawal(opened.database, toWithdrawalId(id));
    if (command.json) command.print(toJson({ outcome, withdrawal: withdrawal ?? null }));
    else {
      command.print(`${id}: ${CANCEL_SENTENCES[outcome]}`);
      if (withdrawal !== undefined) command.print(rowOf(withdrawal));
    }
    return outcome === "done" ? 0 : 1;
  });
}

/** `withdrawals freeze`: nothing more is signed until `release`; what is signed goes on. */
export async function runFreezeWithdrawals(
  command: LedgerCommand,
  options: { readonly reason?: string; readonly wallet?: string },
): Promise<number> {
  const reason = options.reason ?? "an operator froze it";
  const freeze = async (opened: LedgerAlone): Promise<number> => {
    const meant = { reason, wallet: options.wallet };
    const { changed, switches, fault } = await freezeWallets(opened, command.home, meant);
    if (command.json) {
      command.print(toJson({ changed, signing: summaryOf(switches), switches }));
    } else for (const line of switches.map(switchLine)) command.print(line);
    if (fault !== undefined) throw fault;
    return 0;
  };
  return withLedgerAlone(command, freeze, TO_STOP);
}

/** What a freeze came to. */
export interface FrozenWallets {
  readonly changed: boolean;
  readonly switches: readonly WalletSwitch[];
  /** Why not every place could be asked, or told; known when all that can be are frozen. */
  readonly fault?: unknown;
}

/**
 * Freezes wallets by their own switches, which the tables of every release have.
 * @param meant `wallet`: only this one, as it was typed; else all that sign
 * @throws USAGE
 */
export async function freezeWallets(
  opened: Pick<LedgerAlone, "database" | "listWallets">,
  home: string,
  meant: { readonly reason: string; readonly wallet: string | undefined },
): Promise<FrozenWallets> {
  const { database } = opened;
  const { reason } = meant;
  const { wallets, fault: listFault } = await walletsToStop(opened, home);
  let lookFault = listFault;
  const chosen = walletsMeant(wallets, meant.wallet);
  let changed = false;
  let fault: unknown;
  for (const { address } of chosen) {
    try {
      const isNew = await freezeSigning(database, address, reason);
      changed = isNew || changed;
      // A word of its own: a release that is under way has looked at the one before.
      if (!isNew) await freezeSigning(database, address, typedAgain(reason));
    } catch (error) {
      // The others are frozen all the same.
      fault ??= error;
    }
  }
  const switches = await readSwitches(database, chosen).catch((error: unknown) => {
    lookFault ??= error;
    return readOwnSwitches(database, chosen);
  });
  if (isOtherTables(lookFault)) lookFault = await otherTables(database, lookFault);
  return { changed, switches, fault: fault ?? lookFault };
}

/** Of a reason that stands there already, as much as leaves room for when it was typed again. */
function typedAgain(reason: string): string {
  return `${reason.slice(0, 900)} (typed again at ${new Date().toISOString()})`;
}

/** A wallet, as far as a freeze needs it. */
type Stoppable = Pick<HotWallet, "address" | "status">;

/** A wallet that a file of the home hides pays nothing before the ledger knows it: all others are stopped. */
async function walletsToStop(
  { database, listWallets: listKnown }: Pick<LedgerAlone, "database" | "listWallets">,
  home: string,
): Promise<Pick<FrozenWallets, "fault"> & { readonly wallets: readonly Stoppable[] }> {
  try {
    return { wallets: await listKnown() };
  } catch (fault) {
    if (fault instanceof LedgerError) return { wallets: await listWallets(database), fault };
    const signers = await listSigners(database, home);
    const wallets = signers.map((address) => ({ address, status: "active" as const }));
    return { wallets, fault };
  }
}

/** Tables of another release lack something that this one asks for, or have it otherwise. */
async function otherTables(sql: Sql, cause: unknown): Promise<LedgerError> {
  const later = await laterMigrations(sql);
  const named = later.length === 0 ? "" : `; it has made ${later.join(", ")}`;
  return new LedgerError(
    later.length === 0 ? "MIGRATION_NEEDED" : "NEWER_LEDGER",
    "the ledger's tables are of another release, which this program cannot ask everything " +
      `(${errorMessage(cause)}${named}): all wallets that are known are frozen as shown; look at them ` +
      "with that release",
    { cause },
  );
}

/** The wallets' own switches, without what tables of another release may lack. */
async function readOwnSwitches(
  sql: Sql,
  wallets: readonly Stoppable[],
): Promise<readonly WalletSwitch[]> {
  const switches: WalletSwitch[] = [];
  for (const { address: wallet } of wallets) {
    const cause = await readSwitchCause(sql, wallet);
    const changedAt = cause && new Date(cause.since).toISOString();
    const frozen = cause !== undefined;
    switches.push({ wallet, frozen, reason: cause?.reason ?? "", changedAt });
  }
  return switches;
}

/**
 * The wallets that a command means: the one that `--wallet` names, else all that are not retired.
 * @throws USAGE
 */
export function walletsMeant<W extends Stoppable>(
  wallets: readonly W[],
  flag: string | undefined,
): readonly W[] {
  if (flag === undefined) {
    const signing = wallets.filter(({ status }) => status !== "retired");
    return signing.length === 0 ? wallets : signing;
  }
  const address = readWalletAddress(flag);
  const found = wallets.filter((wallet) => wallet.address === address);
  if (found.length > 0) return found;
  throw new CliError("USAGE", `${flag} is none of the hot wallets: see causeway wallets list.`);
}

/** The switch of one wallet. */
export interface WalletSwitch extends SigningFreeze {
  readonly wallet: Address;
}

/** Reads the switches of wallets, in their order. */
export async function readSwitches(
  sql: Sql,
  wallets: readonly Stoppable[],
): Promise<WalletSwitch[]> {
  const switches: WalletSwitch[] = [];
  for (const { address } of wallets) {
    switches.push({ wallet: address, ...(await readFreeze(sql, address)) });
  }
  return switches;
}

/** Of all switches the first that is frozen, else the first. */
function summaryOf(switches: readonly WalletSwitch[]): SigningFreeze {
  const shown = switches.find(({ frozen }) => frozen) ?? switches[0];
  return shown ?? { frozen: false, reason: "", changedAt: undefined };
}

/** One line about a switch. */
export function switchLine(walletSwitch: WalletSwitch): string {
  const { wallet, frozen, changedAt, reason, behindElsewhere } = walletSwitch;
  const name = toChecksumAddress(wallet);
  if (frozen) return `signing for ${name} is FROZEN since ${changedAt}: ${reason}`;
  const but = behindElsewhere === undefined ? "" : `, but it pays nothing new: ${behindElsewhere}`;
  return `signing for ${name} goes on${but}`;
}

function rowOf(withdrawal: Withdrawal): string {
  const { id, status, customerId, asset, amountUnits, destination, nonce, reason } = withdrawal;
  const place = nonce === undefined ? "" : ` nonce ${nonce}`;
  const why = reason === undefined ? "" : ` (${reason})`;
  const amount = amountText(asset, amountUnits);
  return `${id} ${status} ${customerId} ${amount} -> ${toChecksumAddress(destination)}${place}${why}`;
}

function detailsOf(withdrawal: Withdrawal): string[] {
  const { asset, amountUnits, hashes, txHash, blockNumber, history, expiresAt } = withdrawal;
  const mined = blockNumber === undefined ? "not yet" : `${txHash} in block ${blockNumber}`;
  return [
    rowOf(withdrawal),
    `  amount     ${amountUnits} ${asset === NATIVE_ASSET ? "atoken" : `units of ${asset}`}`,
    `  signed     ${hashes.length === 0 ? "nothing yet" : hashes.join(", ")}`,
    `  mined      ${mined}`,
    ...(expiresAt === undefined ? [] : [`  deadline   ${expiresAt}`]),
    ...history.map(({ status, at }) => `  ${at}  ${status}`),
  ];
}
