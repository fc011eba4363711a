/**
 * Receipts of payments, of which there may be more than an answer holds: who is paid may log what he likes.
 * What a node did not tell of is kept apart from what it does not have.
 */
import type { Hash32, Height } from "../../chain/hex.js";
import { readSafeQuantity } from "../../rpc-client/answer-fields.js";
import { badAnswer, isTooMuch, isTooMuchAtOnce } from "../../rpc-client/errors.js";
import { receiptCalls } from "../../rpc-client/evm-client.js";
import {
  type JsonRpcClient,
  MAX_BATCH_CALLS,
  resultOf,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
} from "../../rpc-client/json-rpc.js";
import { type NodeReceipt, parseNodeReceipt } from "../../rpc-client/transaction-codec.js";

/** Why a node told nothing of a receipt: it refuses it alone, too, or there was no time to ask it. */
export type Untold = "too-large" | "no-time";

/** Receipts by hash; a missing one was unknown to a node at `height` or above. */
export interface ReceiptsAtHeight {
  readonly height: Height;
  readonly byHash: ReadonlyMap<Hash32, NodeReceipt>;
  /** Of these the node told nothing: they are not missing. */
  readonly untold: ReadonlyMap<Hash32, Untold>;
}

/** Why nothing is known of what became of these attempts; undefined where a receipt may be missing. */
export function untoldOf(
  attempts: readonly { readonly hash: Hash32 }[],
  { untold }: Pick<ReceiptsAtHeight, "untold">,
): Untold | undefined {
  const reasons = attempts.flatMap(({ hash }) => untold.get(hash) ?? []);
  return reasons.find((reason) => reason === "too-large") ?? reasons[0];
}

/** Receipts of one exchange, in which their node's height is asked for, too. */
const RECEIPTS_PER_CALL = MAX_BATCH_CALLS - 1;

/** After this no further part is asked for: what was told is to be booked, and payments go on. */
const RECEIPTS_BUDGET_MS = 2_000;

/** Hashes that are remembered; with more, who comes first begins anew. */
const MAX_POSTPONED = 20_000;

const HEIGHT_CALL: RpcCall = { method: "eth_blockNumber", params: [] };

/** What a node has told so far. */
interface Told {
  readonly heights: Height[];
  readonly byHash: Map<Hash32, NodeReceipt>;
  readonly untold: Map<Hash32, Untold>;
}

/** What of one exchange the node had no room for. */
interface Refused {
  readonly hashes: readonly Hash32[];
  readonly error: unknown;
}

/** Reads receipts of one node. What there was no time for comes first at the next look. */
export class ReceiptReader {
  readonly #rpc: JsonRpcClient;
  readonly #budgetMs: number;
  readonly #postponed = new Set<Hash32>();

  /** @param budgetMs time of one look; the last exchange may end behind it */
  constructor(rpc: JsonRpcClient, budgetMs: number = RECEIPTS_BUDGET_MS) {
    this.#rpc = rpc;
    this.#budgetMs = budgetMs;
  }

  /**
   * As many at once as have room in an answer; one that has none even alone is `too-large`. A node behind a
   * balancer may answer each part: what all of them have seen is what the lowest has.
   * @throws RpcError, NodeFault; what it refuses for being busy only where nothing else was told
   */
  async read(hashes: readonly Hash32[], options: RpcOptions): Promise<ReceiptsAtHeight> {
    const told: Told = { heights: [], byHash: new Map(), untold: new Map() };
    const late = await this.#readParts(this.#inTurn(hashes), told, options);
    for (const hash of late) told.untold.set(hash, "no-time");
    this.#remember(hashes, new Set(late));
    if (told.heights.length === 0) {
      const [height] = await this.#rpc.batch([HEIGHT_CALL], options);
      told.heights.push(readHeight(height));
    }
    return { height: Math.min(...told.heights), byHash: told.byHash, untold: told.untold };
  }

  /** @returns those that were not asked for in time */
  async #readParts(
    hashes: readonly Hash32[],
    told: Told,
    options: RpcOptions,
  ): Promise<readonly Hash32[]> {
    const deadlineMs = performance.now() + this.#budgetMs;
    let pending = hashes;
    let most = RECEIPTS_PER_CALL;
    // At least the first part, so that every look ends with an answer about somebody.
    while (pending.length > 0 && (pending === hashes || performance.now() < deadlineMs)) {
      const part = pending.slice(0, most);
      const refused = await askPart(this.#rpc, part, told, options);
      const toldCount = part.length - refused.hashes.length;
      if (toldCount > 0) {
        pending = [...refused.hashes, ...pending.slice(part.length)];
        most = refused.hashes.length === 0 ? Math.min(2 * most, RECEIPTS_PER_CALL) : toldCount;
        continue;
      }
      const [only] = part;
      if (part.length > 1 || only === undefined) {
        most = Math.ceil(part.length / 2);
        continue;
      }
      if (!isTooMuch(refused.error)) {
        // It is busy, and would say so of each.
        if (told.heights.length === 0) throw refused.error;
        return pending;
      }
      told.untold.set(only, "too-large");
      pending = pending.slice(1);
    }
    return pending;
  }

  /** Those first that there was no time for, in the order in which they began to wait. */
  #inTurn(hashes: readonly Hash32[]): readonly Hash32[] {
    if (this.#postponed.size === 0) return hashes;
    const wanted = new Set(hashes);
    const first = [...this.#postponed].filter((hash) => wanted.has(hash));
    return [...first, ...hashes.filter((hash) => !this.#postponed.has(hash))];
  }

  #remember(asked: readonly Hash32[], late: ReadonlySet<Hash32>): void {
    for (const hash of asked) if (!late.has(hash)) this.#postponed.delete(hash);
    if (this.#postponed.size + late.size > MAX_POSTPONED) this.#postponed.clear();
    for (const hash of late) this.#postponed.add(hash);
  }
}

/** One exchange. @returns what the node had no room for; all of it where it refused the exchange */
async function askPart(
  rpc: JsonRpcClient,
  part: readonly Hash32[],
  told: Told,
  options: RpcOptions,
): Promise<Refused> {
  let outcomes: readonly RpcOutcome[];
  try {
    outcomes = await rpc.batch([HEIGHT_CALL, ...receiptCalls(part)], options);
  } catch (error) {
    if (!isTooMuchAtOnce(error)) throw error;
    return { hashes: part, error };
  }
  const [height, ...receipts] = outcomes;
  // Without its height an answer says nothing of what is missing.
  if (isRefused(height)) return { hashes: part, error: height.error };
  told.heights.push(readHeight(height));
  const refused: Hash32[] = [];
  let error: unknown;
  part.forEach((hash, index) => {
    const outcome = receipts[index];
    if (isRefused(outcome)) {
      refused.push(hash);
      error ??= outcome.error;
      return;
    }
    const result = resultOf(outcome);
    if (result === null) return;
    const receipt = parseNodeReceipt(result);
    if (receipt.transactionHash !== hash) throw badAnswer("receipt of another transaction");
    told.byHash.set(hash, receipt);
  });
  return { hashes: refused, error };
}

/** Whether a node had no room for an answer beside others, or at all. */
function isRefused(outcome: RpcOutcome | undefined): outcome is RpcOutcome & { ok: false } {
  return outcome !== undefined && !outcome.ok && isTooMuchAtOnce(outcome.error);
}

function readHeight(outcome: RpcOutcome | undefined): Height {
  return readSafeQuantity(resultOf(outcome), "block number");
}
