/** The part of `causeway recover` for a chain that came back without blocks that are booked. */
import { existsSync } from "node:fs";
import { readKillSwitch } from "../../ledger/kill-switch/kill-switch.js";
import { readKillSwitchFile } from "../../ledger/kill-switch/kill-switch-file.js";
import { stops, stricter } from "../../ledger/kill-switch/kill-switch-level.js";
import { killSwitchPath } from "../../ledger/policy/policy-paths.js";
import {
  planRewind,
  type RewindChain,
  type RewindPlan,
} from "../../ledger/recovery/older-chain.js";
import { applyRewind, type RewindResult } from "../../ledger/recovery/rewind.js";
import { isWatchLeaseOfOther } from "../../ledger/watch/watch-lease.js";
import type { SendOutcome } from "../../rpc-client/evm-client.js";
import { isPruned } from "../../rpc-client/errors.js";
import { submitRefusalOf } from "../../rpc-client/submit-refusal.js";
import { amountText } from "../amount-text.js";
import { heldUnits } from "../../rpc-client/tokens/held-units.js";
import { toJson } from "../command-context.js";
import type { LedgerCommand, OpenedLedger } from "../ledger/ledger-tools.js";

/** Raw transactions in one request. */
const SEND_CHUNK = 100;

/** Whose payment is neither on the chain nor here. */
const BYTES_MISSING = "its bytes are not here: whoever has them sends them, or use the nonce up";

/** Said where nothing would be found out, however old the ledger is. */
const NOBODY_REMEMBERS =
  "This home remembers nothing of the ledger, and no deposit watcher is at work whose home does: whether " +
  "the ledger came back older is not known. Start the deposit watcher first, it tells. Where its home is " +
  'lost, or holds no data/ledger-mark.json: causeway recover --declare "<reason>". The chain is not behind.';

/** Said where no home but a watcher's, which nobody here can look into, vouches for the ledger. */
const WATCHER_REMEMBERS =
  "A deposit watcher is at work and finds the ledger not behind what its home remembers, and the chain is " +
  "not behind: nothing to do. Where that home is new, or held no data/ledger-mark.json, it has taken the " +
  'ledger as it found it: causeway recover --declare "<reason>".';

/** What became of the bytes that were sent again. */
interface Resent {
  readonly hash: string;
  /** "sent", or the node's refusal. */
  readonly outcome: string;
  /** Sending them again may help: neither has the node them, nor is their nonce used. */
  readonly isLeft: boolean;
}

/**
 * Shows what the chain lost; with `apply` it goes back and sends the stored bytes again, unless sending
 * is stopped.
 * @returns 0 when nothing is missing, or all was done; else 1, also where the node refuses bytes, bytes
 *   are missing here, or nobody remembers the ledger
 */
export async function recoverChain(
  command: LedgerCommand,
  opened: OpenedLedger,
  options: {
    readonly apply?: boolean;
    readonly operator: string;
    /** The home remembers its ledger, which was held against that. */
    readonly isRemembering: boolean;
  },
): Promise<number> {
  const { database } = opened;
  const plan = await planRewind(database, rewindChain(command, opened));
  if (plan === undefined) {
    // A watcher at work holds it against what its home remembers, each round before it goes on.
    const { isRemembering } = options;
    const isHeld = isRemembering || (await isWatchLeaseOfOther(database, { owner: "" }));
    const words = isHeld ? standingWords(isRemembering) : NOBODY_REMEMBERS;
    const document = { plan: null, rewind: null, isRemembered: isHeld };
    command.print(command.json ? toJson(document) : words);
    return isHeld ? 0 : 1;
  }
  const { cursor, to } = plan;
  let result: RewindResult | undefined;
  let resent: Resent[] | undefined;
  let stopped: string | undefined;
  if (options.apply === true) {
    if (to.height < cursor.height) result = await applyRewind(database, plan, options.operator);
    stopped = await stoppedReason(command, opened);
    resent = stopped === undefined ? await resend(command, opened, plan) : [];
  }
  if (command.json) {
    const { payments, paidOtherwise, unsendable, onChain, ...rest } = plan;
    const shown = payments.map(({ raw, former: _former, ...payment }) => ({
      ...payment,
      isStored: raw !== undefined,
      notSent:
        paidOtherwise.get(payment.hash) ?? (unsendable.has(payment.hash) ? BYTES_MISSING : null),
    }));
    const rewind = { ...rest, payments: shown, onChain: [...onChain] };
    const done = { result: result ?? null, resent: resent ?? null, stopped: stopped ?? null };
    command.print(toJson({ plan: null, rewind, ...done }));
  } else {
    for (const line of rewindLines(plan, { result, resent, stopped })) command.print(line);
  }
  const isHeldBack =
    plan.paidOtherwise.size > 0 ||
    plan.unsendable.size > 0 ||
    (stopped !== undefined && plan.payments.length > 0) ||
    resent?.some(({ isLeft }) => isLeft) === true;
  return options.apply === true && !isHeldBack ? 0 : 1;
}

function standingWords(isRemembering: boolean): string {
  return isRemembering ? "Neither ledger nor chain is behind: nothing to do." : WATCHER_REMEMBERS;
}

/** Why nothing may be sent: the stricter of ledger and home, as for the worker. */
async function stoppedReason(
  { home }: LedgerCommand,
  { database }: OpenedLedger,
): Promise<string | undefined> {
  const file = killSwitchPath(home);
  const state = await readKillSwitch(database);
  // A home that only watches has no copy.
  const { level, reason } = existsSync(file) ? stricter(readKillSwitchFile(file), state) : state;
  return stops(level, "stop-broadcast") ? `kill switch ${level}: ${reason}` : undefined;
}

function rewindChain({ signal }: LedgerCommand, { node }: OpenedLedger): RewindChain {
  return {
    headHeight: () => node.blockNumber({ signal }),
    async blockHash(height) {
      try {
        return (await node.getBlockHeader(height, { signal }))?.hash;
      } catch (error) {
        if (isPruned(error)) return "pruned";
        throw error;
      }
    },
    areMined: async (hashes) => {
      const receipts = await node.getTransactionReceipts(hashes, { signal });
      return receipts.map((receipt) => receipt !== undefined);
    },
    nextNonce: (wallet) => node.getTransactionCount(wallet, "latest", { signal }),
    coinsAt: (address, height) => node.getBalance(address, height, { signal }),
    unitsAt: (token, accounts, at) => {
      const queries = accounts.map((account) => ({ token, account, at }));
      return heldUnits(node, queries, { signal });
    },
  };
}

/** The same bytes in the order of their nonces: each can be mined once, whoever sent it before. */
async function resend(
  { signal }: LedgerCommand,
  { node }: OpenedLedger,
  { payments, paidOtherwise }: RewindPlan,
): Promise<Resent[]> {
  const stored = payments.flatMap(({ raw, hash }) =>
    raw === undefined || paidOtherwise.has(hash) ? [] : [{ raw, hash }],
  );
  const resent: Resent[] = [];
  for (let start = 0; start < stored.length; start += SEND_CHUNK) {
    const part = stored.slice(start, start + SEND_CHUNK);
    const outcomes = await node.sendRawTransactions(
      part.map(({ raw }) => raw),
      { signal },
    );
    part.forEach(({ hash }, index) => {
      resent.push({ hash, ...resentAs(outcomes[index]) });
    });
  }
  return resent;
}

function resentAs(outcome: SendOutcome | undefined): Omit<Resent, "hash"> {
  if (outcome === undefined) return { outcome: "no answer", isLeft: true };
  if (outcome.outcome === "accepted") return { outcome: "sent", isLeft: false };
  const { error } = outcome;
  switch (submitRefusalOf(error)) {
    case "ALREADY_KNOWN":
      return { outcome: "already known", isLeft: false };
    case "NONCE_TOO_LOW":
      return { outcome: "not sent, as its nonce is used by now", isLeft: false };
    default:
      return { outcome: `the node refuses it (${error.nodeMessage})`, isLeft: true };
  }
}

/** What became of a plan; nothing of it where it is only shown. */
interface RewindOutcome {
  readonly result: RewindResult | undefined;
  readonly resent: readonly Resent[] | undefined;
  readonly stopped: string | undefined;
}

function rewindLines(plan: RewindPlan, outcome: RewindOutcome): string[] {
  const done = outcome.resent !== undefined;
  return [
    `The chain is older than the ledger: its head is ${plan.headHeight}, booked is block ` +
      `${plan.cursor.height} (${plan.cursor.blockHash ?? "none"}).`,
    ...openingLines(plan),
    ...placeLines(plan, done),
    ...vanishedLines(plan, done),
    ...paymentLines(plan),
    ...resentLines(plan, outcome),
    ...coverLines(outcome.result),
    done
      ? "When the payments are mined again: causeway withdrawals release"
      : "Nothing was changed. If the newest blocks can come back, wait for them; " +
        "else: causeway recover --apply",
  ];
}

/** Tokens of which nobody tells what was held when the books went back. */
function openingLines({ openings, to }: RewindPlan): string[] {
  return openings.untold.map(
    (asset) =>
      `NOT READ: the contract of ${asset} does not tell what all of our addresses held after block ` +
      `${to.height}: of those the books have nothing from before; reconcile names what is missing ` +
      "once it tells",
  );
}

/** From where blocks are booked again. */
function placeLines({ cursor, to }: RewindPlan, done: boolean): string[] {
  if (to.height >= cursor.height) return ["The last booked block is there; the watcher stays."];
  return [
    `${done ? "done" : "to do"}: the watcher goes back to block ${to.height}`,
    "The sidecar's index keeps the lost blocks and goes on telling them: if it was not deleted " +
      "with them, stop the sidecar, delete data/sidecar in its home, start it, and: causeway " +
      "deposits resume. Of the indexer: causeway indexer rebuild",
  ];
}

/** Deposits and inflows of the lost blocks. */
function vanishedLines({ deposits, inflows, onChain }: RewindPlan, done: boolean): string[] {
  const reversed = done ? "reversed" : "will be reversed";
  const vanished = [
    ...deposits.map(({ id, txHash, asset, amountUnits, customerId, status }) => {
      const what = `deposit ${id}: ${amountText(asset, amountUnits)} of ${customerId}, ${status}`;
      return { txHash, what: `${what}, ${txHash}` };
    }),
    ...inflows.map(({ txHash }) => ({ txHash, what: `inflow of a hot wallet ${txHash}` })),
  ];
  return vanished.map(({ txHash, what }) =>
    onChain.has(txHash)
      ? `${what}: it is on the chain: ${reversed}, and booked again as the watcher comes by`
      : `missing ${what}: ${reversed}`,
  );
}

function paymentLines({ payments }: RewindPlan): string[] {
  return payments.map(
    ({ withdrawalId, nonce, asset, amountUnits, hash, raw }) =>
      `missing payment ${hash} (nonce ${nonce}): ${amountText(asset, amountUnits)} of ` +
      `${withdrawalId ?? "a recovered payment"}${raw === undefined ? ": its bytes are not here" : ""}`,
  );
}

/** What became of missing payments that were sent once more, and why others were not. */
function resentLines(plan: RewindPlan, { resent, stopped }: RewindOutcome): string[] {
  const { payments, paidOtherwise } = plan;
  const unsendable = resent === undefined ? [] : [...plan.unsendable];
  return [
    ...(resent ?? []).map(({ hash, outcome, isLeft }) =>
      isLeft
        ? `NOT SENT: ${hash}: ${outcome}; once that is mended: causeway recover --apply`
        : `sent again: ${hash}: ${outcome}`,
    ),
    ...unsendable
      .filter((hash) => !paidOtherwise.has(hash))
      .map((hash) => `NOT SENT: ${hash}: ${BYTES_MISSING}`),
    ...[...paidOtherwise].map(([hash, reason]) => `NOT SENT: ${hash}: ${reason}`),
    ...(stopped === undefined || payments.length === 0
      ? []
      : [`NOT SENT: ${stopped}; once it is lifted: causeway recover --apply`]),
  ];
}

/** What the reversed deposits had covered. */
function coverLines(result: RewindResult | undefined): string[] {
  if (result === undefined) return [];
  return [
    ...result.uncovered.map(
      (id) => `rejected: ${id} waited, and the deposits that covered it are gone`,
    ),
    ...result.frozen.map(
      (id) => `frozen: ${id} is not paid when it is let go on: it ends as rejected`,
    ),
    ...result.short.map(
      ({ asset, amountUnits }) =>
        `customers have withdrawn ${amountText(asset, amountUnits)} of the reversed deposits: ` +
        "booked to asset:break",
    ),
  ];
}
