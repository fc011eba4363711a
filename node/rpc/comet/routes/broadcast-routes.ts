/**
 * Transactions on their way in: `broadcast_tx_*`, `check_tx` and what is in the pool. They travel
 * as SDK transactions (D20); of those around an EVM transaction the pool gets what is inside.
 */
import { sha256Hex } from "../../../../chain/hashes.js";
import type { Hash32 } from "../../../../chain/hex.js";
import type { Logger } from "../../../../runtime/process/logger.js";
import { breathe, doBreathing } from "../../../../runtime/process/main-thread.js";
import { readInTurn } from "../../../../runtime/turns/resting-lane.js";
import { withLimit } from "../../../../runtime/process/task.js";
import type { PendingTransaction } from "../../../view/event-bus.js";
import type { Arguments } from "../arguments.js";
import { bytesOf, executedAt } from "../chain-reads.js";
import { type Refusal, refusalOf } from "../check-codes.js";
import { gasWantedOf, readTransaction, type Submission, submitTransaction } from "../submission.js";
import { upperHex } from "../json/encode.js";
import { JsonPieces } from "../json/json-pieces.js";
import { pagesOf, transactionPieces } from "../json/transaction-pieces.js";
import { refused } from "../errors.js";
import type { FoundTransaction } from "../search/event-search.js";
import { perPage } from "../paging.js";
import type { CometChain } from "../ports.js";
import { resultJson, transactionResultSteps } from "../json/results.js";
import { type Route, route } from "../route.js";

/** How long `broadcast_tx_commit` waits: CometBFT's `timeout_broadcast_tx_commit`. */
const COMMIT_TIMEOUT_MS = 10_000;

/** Requests of `broadcast_tx_commit` that wait at once: in CometBFT each is a subscriber. */
const MAX_COMMIT_WAITERS = 500;

/** Submissions that nobody waits for; each holds a transaction of up to 128 KiB. */
const MAX_ASYNC_SUBMISSIONS = 1_000;

/** The routes of this file. */
export function broadcastRoutes(
  chain: CometChain,
  log: Logger,
): readonly (readonly [string, Route])[] {
  const broadcast = new Broadcast(chain, log);
  return [
    route("broadcast_tx_async", ["tx"], (values) => broadcast.later(values.bytes("tx"))),
    route("broadcast_tx_sync", ["tx"], (values) => broadcast.now(values.bytes("tx"))),
    route("broadcast_tx_commit", ["tx"], (values, { signal }) =>
      broadcast.untilMined(values.bytes("tx"), signal),
    ),
    route("check_tx", ["tx"], async (values, { signal, clientAddress: client }) => {
      const bytes = values.bytes("tx");
      const refusal = await readInTurn(bytes.length, { signal, client }, () => check(chain, bytes));
      return checkJson(refusal, gasWantedOf(bytes, refusal));
    }),
    route("unconfirmed_txs", ["limit"], (values, { signal }) => unconfirmed(chain, values, signal)),
    route("num_unconfirmed_txs", [], () => {
      const { total, total_bytes } = totalsOf(chain);
      return { n_txs: total, total, total_bytes, txs: null };
    }),
  ];
}

/** `ResponseCheckTx`. */
function checkJson(refusal: Refusal | undefined, gasWanted: bigint) {
  const { code, log, codespace } = refusal ?? { code: 0, log: "", codespace: "" };
  return resultJson({ code, log, codespace, gasWanted, gasUsed: 0n, events: [] });
}

async function check(chain: CometChain, bytes: Uint8Array): Promise<Refusal | undefined> {
  const transaction = readTransaction(bytes);
  if ("code" in transaction) return transaction;
  const error = await chain.checkTransaction(transaction.raw);
  return error === undefined ? undefined : refusalOf(error);
}

function broadcastJson({ hash, refusal }: Submission) {
  const { code, log, codespace } = refusal ?? { code: 0, log: "", codespace: "" };
  return { code, data: "", log, codespace, hash: upperHex(hash) };
}

/** The three ways to submit. */
class Broadcast {
  private asyncCount = 0;
  private waiterCount = 0;

  constructor(
    private readonly chain: CometChain,
    private readonly log: Logger,
  ) {}

  /** Answers at once; what becomes of the transaction is for the client to find out. */
  later(bytes: Uint8Array) {
    if (this.asyncCount >= MAX_ASYNC_SUBMISSIONS) throw refused("mempool is full");
    this.asyncCount += 1;
    submitTransaction(this.chain, bytes)
      .catch((err: unknown) => this.log.debug({ err }, "a transaction was not admitted"))
      .finally(() => {
        this.asyncCount -= 1;
      });
    return broadcastJson({ hash: sha256Hex(bytes), refusal: undefined });
  }

  /** Answers when the pool has the transaction on disk, or has refused it. */
  async now(bytes: Uint8Array) {
    return broadcastJson(await submitTransaction(this.chain, bytes));
  }

  /** Answers when the transaction is in a block. Throws INTERNAL after ten seconds. */
  async untilMined(bytes: Uint8Array, signal: AbortSignal) {
    if (this.waiterCount >= MAX_COMMIT_WAITERS) {
      throw refused(`max_subscription_clients ${MAX_COMMIT_WAITERS} reached`);
    }
    const hash = sha256Hex(bytes);
    this.waiterCount += 1;
    const ending = new AbortController();
    return withLimit([signal, ending.signal], COMMIT_TIMEOUT_MS, async (limited) => {
      const mined = this.whenMined(hash, limited);
      try {
        const { refusal } = await submitTransaction(this.chain, bytes);
        const check_tx = checkJson(refusal, gasWantedOf(bytes, refusal));
        if (refusal !== undefined) {
          const tx_result = checkJson(undefined, 0n);
          return { check_tx, tx_result, hash: upperHex(hash), height: "0" };
        }
        const place = await mined;
        const executed = await executedAt(this.chain, place, signal);
        const tx_result = await doBreathing(transactionResultSteps(executed), signal);
        return { check_tx, tx_result, hash: upperHex(hash), height: place.height.toString() };
      } finally {
        ending.abort();
        this.waiterCount -= 1;
      }
    });
  }

  /** Listens from before the submission on, so that no block is missed; ends with the signal. */
  private whenMined(hash: Hash32, signal: AbortSignal): Promise<FoundTransaction> {
    const { view, bus } = this.chain;
    const waiting = new Promise<FoundTransaction>((resolve, reject) => {
      const giveUp = () => reject(refused("timed out waiting for tx to be included in a block"));
      const stop = bus.on("block", () => {
        const place = view.locateBySdkHash(hash);
        if (place !== undefined) resolve(place);
      });
      const end = () => {
        stop();
        giveUp();
      };
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
    });
    // A refused submission never asks for it.
    waiting.catch(() => undefined);
    return waiting;
  }
}

async function unconfirmed(
  chain: CometChain,
  values: Arguments,
  signal: AbortSignal,
): Promise<JsonPieces> {
  const limit = perPage(values, "limit");
  await breathe(signal);
  const shown: PendingTransaction[] = [];
  for (const pending of chain.pool.executables()) {
    if (shown.length >= limit) break;
    shown.push(pending);
  }
  const n_txs = shown.length.toString();
  const txs = await transactionPieces(pagesOf(eachBytes(shown)), signal);
  const text = JSON.stringify({ n_txs, ...totalsOf(chain), txs: [] });
  return new JsonPieces([text.slice(0, -"]}".length), ...txs, "]}"]);
}

/** One after the other, each when its page is made: a hundred may be megabytes. */
function* eachBytes(transactions: readonly PendingTransaction[]): Generator<Uint8Array> {
  for (const transaction of transactions) yield bytesOf(transaction);
}

/** Count and bytes of the pool as consensus would carry it. */
function totalsOf({ pool }: CometChain) {
  return { total: pool.counts().pending.toString(), total_bytes: pool.carriedBytes().toString() };
}
