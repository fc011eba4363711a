/** The part of `causeway recover` for a chain that came back without blocks that are booked. */
import {
  planRewind,
  type RewindChain,
  type RewindPlan,
} from "../../ledger/recovery/older-chain.js";
import { applyRewind, type RewindResult } from "../../ledger/recovery/rewind.js";
import { amountText } from "../amount-text.js";
import { type LedgerCommand, type OpenedLedger, toJson } from "./ledger-tools.js";

/** Raw transactions in one request. */
const SEND_CHUNK = 100;

/** What became of the bytes that were sent again. */
interface Resent {
  readonly hash: string;
  /** "sent", or the node's refusal. */
  readonly outcome: string;
}

/**
 * Shows what the chain lost; with `apply` it goes back and sends the stored bytes again.
 * @returns 0 when nothing is missing, or it was done; else 1
 */
export async function recoverChain(
  command: LedgerCommand,
  opened: OpenedLedger,
  options: { readonly apply?: boolean; readonly operator: string },
): Promise<number> {
  const { database } = opened;
  const plan = await planRewind(database, rewindChain(command, opened));
  if (plan === undefined) {
    const nothing = "Neither ledger nor chain is behind: nothing to do.";
    command.print(command.json ? toJson({ plan: null, rewind: null }) : nothing);
    return 0;
  }
  const { cursor, to } = plan;
  let result: RewindResult | undefined;
  let resent: Resent[] | undefined;
  if (options.apply === true) {
    if (to.height < cursor.height) result = await applyRewind(database, plan, options.operator);
    resent = await resend(command, opened, plan);
  }
  if (command.json) {
    const { payments, ...rest } = plan;
    const shown = payments.map(({ raw, ...payment }) => ({
      ...payment,
      isStored: raw !== undefined,
    }));
    const rewind = { ...rest, payments: shown };
    command.print(toJson({ plan: null, rewind, result: result ?? null, resent: resent ?? null }));
  } else {
    for (const line of rewindLines(plan, result, resent)) command.print(line);
  }
  return options.apply === true ? 0 : 1;
}

function rewindChain({ signal }: LedgerCommand, { node }: OpenedLedger): RewindChain {
  return {
    headHeight: () => node.blockNumber({ signal }),
    blockHash: async (height) => (await node.getBlockHeader(height, { signal }))?.hash,
    areMined: async (hashes) => {
      const receipts = await node.getTransactionReceipts(hashes, { signal });
      return receipts.map((receipt) => receipt !== undefined);
    },
    nextNonce: (wallet) => node.getTransactionCount(wallet, "latest", { signal }),
  };
}

/** The same bytes in the order of their nonces: each can be mined once, whoever sent it before. */
async function resend(
  { signal }: LedgerCommand,
  { node }: OpenedLedger,
  { payments }: RewindPlan,
): Promise<Resent[]> {
  const stored = payments.flatMap(({ raw, hash }) => (raw === undefined ? [] : [{ raw, hash }]));
  const resent: Resent[] = [];
  for (let start = 0; start < stored.length; start += SEND_CHUNK) {
    const part = stored.slice(start, start + SEND_CHUNK);
    const outcomes = await node.sendRawTransactions(
      part.map(({ raw }) => raw),
      { signal },
    );
    part.forEach(({ hash }, index) => {
      const outcome = outcomes[index];
      const isSent = outcome?.outcome === "accepted";
      const why = outcome?.outcome === "refused" ? outcome.error.message : "no answer";
      resent.push({ hash, outcome: isSent ? "sent" : why });
    });
  }
  return resent;
}

function rewindLines(
  plan: RewindPlan,
  result: RewindResult | undefined,
  resent: readonly Resent[] | undefined,
): string[] {
  const { cursor, to, headHeight, deposits, inflows, payments } = plan;
  const goesBack = to.height < cursor.height;
  const done = resent !== undefined;
  return [
    `The chain is older than the ledger: its head is ${headHeight}, booked is block ` +
      `${cursor.height} (${cursor.blockHash ?? "none"}).`,
    ...(goesBack
      ? [`${done ? "done" : "to do"}: the watcher goes back to block ${to.height}`]
      : ["The last booked block is there; the watcher stays."]),
    ...deposits.map(
      ({ id, txHash, asset, amountUnits, customerId, status }) =>
        `missing deposit ${id}: ${amountText(asset, amountUnits)} of ${customerId}, ${status}, ` +
        `${txHash}: ${done ? "reversed" : "will be reversed"}`,
    ),
    ...inflows.map(
      ({ txHash }) => `missing inflow of a hot wallet ${txHash}: ${done ? "" : "will be "}reversed`,
    ),
    ...payments.map(
      ({ withdrawalId, nonce, asset, amountUnits, hash, raw }) =>
        `missing payment ${hash} (nonce ${nonce}): ${amountText(asset, amountUnits)} of ` +
        `${withdrawalId ?? "a recovered payment"}${raw === undefined ? ": its bytes are not here" : ""}`,
    ),
    ...(resent ?? []).map(({ hash, outcome }) => `sent again: ${hash}: ${outcome}`),
    ...(result?.short ?? []).map(
      ({ asset, amountUnits }) =>
        `customers have withdrawn ${amountText(asset, amountUnits)} of the reversed deposits: ` +
        "booked to asset:break",
    ),
    done
      ? "When the payments are mined again: causeway withdrawals release"
      : "Nothing was changed. If the newest blocks can come back, wait for them; " +
        "else: causeway recover --apply",
  ];
}
