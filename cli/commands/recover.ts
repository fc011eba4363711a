/**
 * `causeway recover`: rebuilds what a lost or older ledger no longer knows from what the home and the
 * chain prove. The rules are in ledger/recovery; here is the chain that they ask, and the words.
 */
import { type Address, toChecksumAddress } from "../../chain/address.js";
import { momentMsOf } from "../../chain/encoding/calendar.js";
import type { Hash32 } from "../../chain/hex.js";
import type { TokenEntry } from "../../chain/token-list.js";
import { loadExchangeTokens } from "../../ledger/assets/asset-registry.js";
import { closeIfBehind } from "../../ledger/guard/ledger-guard.js";
import { openIncident } from "../../ledger/incidents.js";
import { listOpenPayments } from "../../ledger/requests/recovered-payments.js";
import {
  declareLost,
  keepUnremembered,
  UNREMEMBERED_ADDRESSES,
} from "../../ledger/recovery/lost-addresses.js";
import { applyRecovery, type RecoveryResult } from "../../ledger/recovery/recovery.js";
import {
  type MinedPayment,
  planRecovery,
  type RecoveryChain,
  type RecoveryContext,
  type RecoveryPlan,
  type WalletPlan,
} from "../../ledger/recovery/recovery-plan.js";
import { unknownAddressesText } from "../../ledger/recovery/reporters.js";
import { unseenText } from "../../ledger/recovery/unseen-payments.js";
import { notRegistered } from "../../ledger/wallets/home-wallets.js";
import { notToldText, waitingText } from "../../ledger/wallets/waiting-in-pool.js";
import type { HotWallet } from "../../ledger/wallets/wallet.js";
import { CliError } from "../errors.js";
import { type DepositKeys, readDepositKeys } from "../ledger/deposit-keys.js";
import { refuseSyncing } from "../ledger/late-node.js";
import { operatorName } from "./ledger-decisions.js";
import { recoverChain } from "./recover-chain.js";
import { toJson } from "../command-context.js";
import { type LedgerCommand, type OpenedLedger, withLedger } from "../ledger/ledger-tools.js";
import { sentText } from "./wallets/transaction-text.js";
import { readWalletAddress } from "./wallets/wallet-argument.js";
import { walletsMeant } from "./withdrawals/withdrawals.js";
import { MAX_RECOVERED_BLOCKS, readWalletTransactions } from "./wallets/wallet-transactions.js";

/** Options of `recover`, as typed. */
export interface RecoverOptions {
  /** Carry the plan out. */
  readonly apply?: boolean;
  /** The operator says that the ledger is older than what was answered, and why. */
  readonly declare?: string;
  /** With `declare`: the last address that the operator's own records know. */
  readonly lastAddressIndex?: string;
  /** With `declare`: of when the backup is that was put back. */
  readonly backupOf?: string;
  /** Keys that addresses were given out by before the home's, each as `<first index>:<file>`. */
  readonly formerKey?: readonly string[];
  /** Wallets that were added behind the backup, and whose keystores lie in other homes. */
  readonly wallet?: readonly string[];
  /** With `apply`: wallets that were used elsewhere before the ledger knew of them. */
  readonly acceptUnseen?: readonly string[];
  readonly operator?: string;
}

/** The last index of BIP-32 that an xpub derives. */
const MAX_INDEX = 2 ** 31 - 1;

/** Lines of one kind that are printed to a person at most; the JSON document has all. */
const MAX_LINES = 50;

/**
 * Shows what a recovery would do, and does it with `apply`.
 * @returns 0 when the ledger is open, 1 while it waits for the recovery
 * @throws MIGRATION_NEEDED where it would only show something, and the tables are older than this program
 */
export async function runRecover(command: LedgerCommand, options: RecoverOptions): Promise<number> {
  if (options.declare?.trim() === "") {
    throw new CliError("USAGE", "--declare needs a reason.");
  }
  const lastAddressIndex = readLastAddressIndex(options);
  const backupAt = readBackupAt(options);
  const recover = async (opened: OpenedLedger): Promise<number> => {
    const { database } = opened;
    const named = await namedWallets(command, opened, options.wallet);
    const wallets = [...opened.wallets, ...named];
    const acceptUnseen = readAcceptedUnseen(options, wallets);
    const tokens = loadExchangeTokens(command.home);
    const operator = operatorName(options.operator);
    // No service may have met it yet: they can stand still until it is recovered. Also where a person
    // declares it lost: of itself it knows neither the last epoch nor the last number.
    const isRemembering = await closeIfBehind(database, command.home);
    const { declare: reason } = options;
    const loss = reason === undefined ? undefined : { reason, operator, backupAt };
    const keys = readDepositKeys(command.home, opened.keyFromIndex, options.formerKey);
    // On a chain that lost blocks no address is made.
    if (loss !== undefined || (await openIncident(database))?.kind === "RECOVERY") {
      await keys.refuseOthers(database);
    }
    if (loss !== undefined) await declareLost(database, loss, lastAddressIndex);
    await refuseSyncing(command, opened, "Nothing was recovered.");
    const chain = recoveryChain(command, opened, { tokens, keys });
    if (loss !== undefined && lastAddressIndex === undefined) {
      await keepUnremembered(database, chain, loss);
      if (!command.json) command.print(UNREMEMBERED);
    }
    if (loss !== undefined && backupAt === undefined && !command.json) command.print(UNDATED);
    const context: RecoveryContext = { database, chain, wallets, tokens };
    const plan = await planRecovery(context);
    const result =
      plan !== undefined && options.apply === true
        ? await applyRecovery(database, plan, operator, acceptUnseen)
        : undefined;
    if (plan === undefined) {
      if (named.length > 0) throw openLedgerTakesNone(named);
      return recoverChain(command, opened, { ...options, operator, isRemembering });
    }
    const toDecide = await listOpenPayments(database, MAX_LINES);
    if (command.json) command.print(toJson({ plan, result: result ?? null }));
    else for (const line of planLines(plan, result)) command.print(line);
    if (!command.json && result !== undefined && toDecide.length > 0) {
      command.print("what a person decides now: causeway ledger open");
    }
    return result === undefined ? 1 : 0;
  };
  // The tables may be of an older release that is at work: who only looks does not change them.
  const isLook = options.apply !== true && options.declare === undefined;
  return withLedger(command, recover, { olderTables: isLook ? "refuse" : "migrate" });
}

function recoveryChain(
  { signal }: LedgerCommand,
  { node }: OpenedLedger,
  { tokens, keys }: { readonly tokens: readonly TokenEntry[]; readonly keys: DepositKeys },
): RecoveryChain {
  // The search and the plan ask for the same ones, and each is derived twice.
  const derived = new Map<number, Address>();
  return {
    headHeight: () => node.blockNumber({ signal }),
    nonceAt: (wallet, at) => node.getTransactionCount(wallet, at, { signal }),
    queuedNonces: (wallet) => node.queuedNonces(wallet, { signal }),
    transactions: (wallet, range) =>
      readWalletTransactions(node, wallet, {
        ...range,
        signal,
        maxBlocks: MAX_RECOVERED_BLOCKS,
      }),
    addressAt(index) {
      const address = derived.get(index) ?? keys.addressAt(index);
      derived.set(index, address);
      return address;
    },
    async areActive(addresses, upTo) {
      // Tokens come without any movement of coins; they leave with a fee.
      const queries = addresses.flatMap((account) =>
        tokens.map(({ contractAddress: token }) => ({ token, account, at: upTo })),
      );
      const held = await node.tokenBalances(queries, { signal });
      const range = { from: 0, to: upTo };
      const pages = await node.manyAccountHeights(addresses, range, { signal });
      return Promise.all(
        addresses.map(async (address, place) => {
          const units = held.slice(place * tokens.length, (place + 1) * tokens.length);
          if (units.some((each = 0n) => each > 0n)) return true;
          let page = pages[place];
          while (page?.heights.length === 0 && page.next !== undefined) {
            const rest = { from: page.next, to: upTo };
            [page] = await node.manyAccountHeights([address], rest, { signal });
          }
          return page !== undefined && page.heights.length > 0;
        }),
      );
    },
  };
}

/** What a declared recovery does about addresses that no record names. */
const UNREMEMBERED =
  "Nobody remembers how many addresses were given out: up to the last one that the chain knows, and " +
  `${UNREMEMBERED_ADDRESSES} behind it, none is given out again. Where your own records of what 8082 ` +
  "answered know a later one, say its index with --last-address-index before you apply this.";

/** What a declared recovery cannot tell where nobody says of when the backup is. */
const UNDATED =
  "Where a backup was put back, nobody has said of when it is: what was written on it since keeps its " +
  "numbers, and whoever had heard others under these takes them for what he heard. Say its time, or any " +
  "other before the first start on it, with --backup-of before you apply this: then that is told again.";

/** @throws USAGE */
function readBackupAt({ backupOf, declare }: RecoverOptions): Date | undefined {
  if (backupOf === undefined) return undefined;
  if (declare === undefined) throw new CliError("USAGE", "--backup-of goes with --declare.");
  const momentMs = momentMsOf(backupOf);
  if (!Number.isNaN(momentMs)) return new Date(momentMs);
  throw new CliError(
    "USAGE",
    "--backup-of takes a date (2026-11-01) or a time with its zone (2026-11-01T03:00:00Z).",
  );
}

/** @throws USAGE */
function readLastAddressIndex({ lastAddressIndex, declare }: RecoverOptions): number | undefined {
  if (lastAddressIndex === undefined) return undefined;
  if (declare === undefined) {
    throw new CliError("USAGE", "--last-address-index goes with --declare.");
  }
  if (!/^(0|[1-9][0-9]{0,9})$/.test(lastAddressIndex) || Number(lastAddressIndex) > MAX_INDEX) {
    throw new CliError("USAGE", `--last-address-index takes 0 to ${MAX_INDEX}.`);
  }
  return Number(lastAddressIndex);
}

/**
 * Those that neither the ledger nor this home knows.
 * @throws USAGE also for one that has sent nothing: it is mistyped, or nothing of it is lost
 */
async function namedWallets(
  { signal }: LedgerCommand,
  { node, wallets }: OpenedLedger,
  flags: readonly string[] = [],
): Promise<readonly HotWallet[]> {
  const known = wallets.map(({ address }) => address);
  const unknown = [...new Set(flags.map(readWalletAddress))].filter(
    (address) => !known.includes(address),
  );
  for (const address of unknown) {
    if ((await node.getTransactionCount(address, "latest", { signal })) > 0n) continue;
    throw new CliError(
      "USAGE",
      `--wallet ${address} has sent nothing: nothing of it is lost. Look whether it is the right address.`,
    );
  }
  const common = { label: "", operator: "nobody yet", reason: "whoever recovered named it" };
  return unknown.map((address) => notRegistered({ address, ...common }));
}

function openLedgerTakesNone(named: readonly HotWallet[]): CliError {
  const names = named.map(({ address }) => address).join(", ");
  return new CliError(
    "USAGE",
    `The ledger is open, and nothing was looked for of ${names}: --wallet goes with a ledger in recovery, ` +
      "or with --declare, which closes it first.",
  );
}

/** @throws USAGE */
function readAcceptedUnseen(
  { acceptUnseen = [], apply }: RecoverOptions,
  wallets: readonly HotWallet[],
): readonly Address[] {
  if (acceptUnseen.length > 0 && apply !== true) {
    throw new CliError("USAGE", "--accept-unseen goes with --apply.");
  }
  return acceptUnseen.flatMap((flag) => walletsMeant(wallets, flag)).map(({ address }) => address);
}

const USES = { paid: "was paid", failed: "failed", cancelled: "was cancelled" };

function planLines(plan: RecoveryPlan, result: RecoveryResult | undefined): string[] {
  const { addresses, tokens, wallets } = plan;
  const first = addresses[0];
  const last = addresses.at(-1);
  const verb = result === undefined ? "to do" : "done";
  const unknown = unknownAddressesText(plan.reporters, result !== undefined);
  return [
    `In recovery: ${plan.reason}.`,
    `Booked up to block ${plan.cursorHeight}, the head is ${plan.headHeight}.`,
    first === undefined || last === undefined
      ? `${verb}: no address is missing`
      : `${verb}: register ${addresses.length} addresses without a customer, indexes ${first.index} ` +
        `to ${last.index}; what they receive goes to suspense`,
    ...shorten(addresses.map(({ index, address }) => `  ${index} ${toChecksumAddress(address)}`)),
    ...tokens.map(({ symbol }) => `${verb}: register the token ${symbol} of the home's list`),
    ...wallets.flatMap((wallet) => walletLines(wallet, verb)),
    `${verb}: events go on behind ${plan.eventSeq} in epoch ${plan.epoch}`,
    ...(plan.toldAgain === 0
      ? []
      : [
          `${verb}: tell ${plan.toldAgain} events again that were written since the loss: their numbers ` +
            "had stood for others",
        ]),
    ...shorten(
      (result?.frozen ?? []).map(
        (id) => `frozen: ${id} may be one of these payments, or was cancelled behind the backup`,
      ),
    ),
    ...(unknown === undefined ? [] : [unknown]),
    ...(result === undefined ? activeLines(wallets) : []),
    result === undefined
      ? "Nothing was changed. To carry it out: causeway recover --apply"
      : "The ledger is open again.",
    ...(result === undefined
      ? []
      : [
          "What persons did behind the backup is undone: keys that were revoked open again, wallets " +
            "that were drained or retired pay again, lists, webhooks with their secrets and the kill " +
            "switch of the ledger are those of then: causeway keys list, wallets list, killswitch show, " +
            "webhooks list",
          "So are corrections of the books: make them again before you link payments, each with its own " +
            "--key and the --block from which it counted (ledger adjust), and assign-deposit and tokens " +
            "accept-code where the ledger asks anew; ledger decisions of the former database, or the last " +
            "audit export, has them",
        ]),
  ];
}

/** What the ledger has forgotten of a wallet whose key is gone cannot be done again before coins go there. */
function activeLines(wallets: RecoveryPlan["wallets"]): string[] {
  const active = wallets.filter(({ wallet: { status } }) => status === "active");
  const names = active.map(({ wallet: { address, label } }) =>
    [toChecksumAddress(address), label].filter((part) => part !== "").join(" "),
  );
  return names.length === 0
    ? []
    : [
        "Active by this ledger, so that they pay and deposits are swept to them once this is applied:",
        ...shorten(names.map((name) => `  ${name}`)),
        "If one of them was drained or retired behind the backup, or its key is lost or has leaked, say so " +
          "first: causeway wallets drain <wallet> --reason TEXT; one that is to be registered above, right " +
          "behind --apply",
      ];
}

function walletLines(plan: WalletPlan, verb: string): string[] {
  const { wallet, isRegistered, payments, booked, found, nextNonce } = plan;
  const name = toChecksumAddress(wallet.address);
  const unseen = unseenText(plan);
  const waiting = waitingText(wallet.address, plan);
  const notTold = notToldText(wallet.address, plan);
  return [
    ...(unseen === undefined || verb === "done" ? [] : [`UNSEEN: ${unseen}`]),
    ...(isRegistered ? [] : [`${verb}: register the hot wallet ${name}: ${wallet.reason}`]),
    `${verb}: book ${payments.length - booked.length} payments of the hot wallet ${name} that the ` +
      `ledger does not know; its next nonce is ${nextNonce}`,
    ...shorten(payments.map((payment) => paymentLine(payment, booked))),
    ...found.map(
      ({ withdrawalId, use, payment }) =>
        `${verb}: ${withdrawalId} ${USES[use]} by ${payment.hash}; the worker books it`,
    ),
    ...(waiting === undefined ? [] : [`WAIT: ${waiting}`]),
    ...(notTold === undefined ? [] : [`NOT KNOWN: ${notTold}`]),
  ];
}

function paymentLine(payment: MinedPayment, booked: readonly Hash32[]): string {
  const { hash, height, nonce } = payment;
  const before = booked.includes(hash)
    ? ", booked already as an outflow that a person accepted"
    : "";
  return `  ${hash} block ${height} nonce ${nonce}: ${sentText(payment)}${before}`;
}

function shorten(lines: readonly string[]): string[] {
  if (lines.length <= MAX_LINES) return [...lines];
  return [...lines.slice(0, MAX_LINES), `  and ${lines.length - MAX_LINES} more (--json has all)`];
}
