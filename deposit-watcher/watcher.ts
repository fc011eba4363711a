/**
 * The watcher's loop: poll the head, read what is new, verify it against the chain, book it in one
 * commit. Faults of the network or the database are waited out; incidents stop crediting until an
 * operator resumes; a broken invariant stops the process.
 */
import assert from "node:assert/strict";
import { errorCode, errorMessage } from "../chain/errors.js";
import type { Height } from "../chain/hex.js";
import type { ChainIdentity } from "../ledger/database.js";
import { commitBlockStep } from "../ledger/blocks/block-step.js";
import { explainedTakings } from "../ledger/blocks/wallet-flows.js";
import type { NewDeposit } from "../ledger/blocks/new-deposits.js";
import { type Incident, type NewIncident, openIncident } from "../ledger/incidents.js";
import { type WatchLease, WatchLeaseLostError } from "../ledger/watch/watch-lease.js";
import type { LedgerGuard } from "../ledger/guard/ledger-guard.js";
import { readCursor, type WatchCursor } from "../ledger/watch/watch-cursor.js";
import type { DataBlock } from "../rpc-client/data-api/data-block.js";
import { systemClock } from "../runtime/process/clock.js";
import { failpoint } from "../runtime/process/failpoint.js";
import type { Logger } from "../runtime/process/logger.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { createWakeup, quietly } from "../runtime/process/task.js";
import type { AddressBook } from "./address-book.js";
import { type PastNode, runBackfill, type SecondPastNode } from "./backfill.js";
import { reportBooked, reportPaused } from "./booked-report.js";
import { type ReadRange, readRuns } from "./reading/block-reader.js";
import { touchTest } from "./block-parts.js";
import { type CatchUpClient, CatchUpSource } from "./reading/catch-up-source.js";
import { BookingLease } from "./booking-lease.js";
import { type CheckedNode, CheckedNodes, readHead, whoLacksNext } from "./chain-check.js";
import { paidIn } from "./deposit-match.js";
import { type PreparedRun, type PrepareParts, prepareRun } from "./prepared-run.js";
import { isUntold, PutOffMemory, throwGravest } from "./put-off.js";
import type { TokenBook } from "./tokens/token-book.js";
import type { TokenNode } from "./tokens/token-run.js";
import { RunTooLong } from "./tokens/wanted-logs.js";
import { AgreeingLooks, isCurable, isOwn, toIncident } from "./watch-faults.js";
import type { WatcherMetrics } from "./watcher-metrics.js";

/**
 * Failpoints on the watcher's way, in order: each names a durable step, or the moment before one.
 * `watcher.in-block-commit` and `watcher.before-block-commit` lie inside the SQL transaction.
 */
export const WATCHER_FAILPOINTS = [
  "watcher.after-read",
  "watcher.after-verify",
  "watcher.in-block-commit",
  "watcher.before-block-commit",
  "watcher.after-block-commit",
  "watcher.before-backfill-commit",
  "watcher.after-backfill-commit",
  "watcher.after-incident",
  "watcher.after-register",
] as const;

/** Wait when the Data API is a little behind the head: it usually has the block within a moment. */
const LAG_RETRY_MS = 100;

/** From so many blocks behind on they are read many at a time. */
const FAR_BEHIND_BLOCKS = 64;

/** Wait after a fault, so that a node or database that is down is not hammered. */
const FAULT_RETRY_MS = 500;

/** One of the two loops. */
interface Loop {
  /** Where it says why it does not come through: one that does says nothing of the other. */
  readonly tells: "problem" | "pastProblem";
  readonly looks: AgreeingLooks;
}

/** What the watcher reads blocks from, holds them against and books them in. */
export interface WatcherParts {
  readonly database: SqlDatabase;
  readonly guard: LedgerGuard;
  readonly node: CheckedNode & TokenNode & PastNode;
  /** Another node, which must agree before anything is booked. */
  readonly secondNode?: (CheckedNode & SecondPastNode) | undefined;
  readonly source: CatchUpClient;
  readonly book: AddressBook;
  /** Tokens that are followed. */
  readonly tokens: Pick<TokenBook, "checkCodes" | "openWaiting" | "refresh" | "tokens">;
  readonly identity: ChainIdentity;
  readonly log: Logger;
  readonly metrics: WatcherMetrics;
  readonly options: {
    readonly pollIntervalMs: number;
    readonly readsInFlight: number;
    /** Heads below the cursor, one after the other, that are not an incident yet. */
    readonly staleHeadsAllowed: number;
    /** How long a watcher that fell silent keeps others from booking. */
    readonly leaseMs: number;
    /** Name of this process, different for every one. */
    readonly owner: string;
    /** As of `TokenRunInput`. */
    readonly mostListed?: number;
  };
}

/** Where the watcher stands, for the API and `/ready`. */
export interface WatcherStatus {
  /** Undefined until the node answered once. */
  readonly headHeight: Height | undefined;
  /** -1 before block 0 is booked. */
  readonly cursorHeight: Height;
  /** The incident that stops crediting. */
  readonly incident: Incident | undefined;
  /** Why the last round of blocks did not come through; undefined when it did. */
  readonly problem: string | undefined;
  /** Why not all of the past could be booked that waits for it; undefined when it was, or is others' work. */
  readonly pastProblem: string | undefined;
  /** When the round last came further, on the clock that never goes back; undefined between rounds. */
  readonly progressedAtMs: number | undefined;
  /** Who lacks the block that comes next, of which the node says that there is one. */
  readonly waitsFor: string | undefined;
}

/**
 * Books blocks in their order while it holds the lease of the cursor, and the past of addresses that came
 * later.
 */
export class Watcher {
  readonly #parts: WatcherParts;
  readonly #nodes: CheckedNodes;
  readonly #booking: BookingLease;
  readonly #catchUp: CatchUpSource;
  readonly #wakeup = createWakeup();
  readonly #backfillWakeup = createWakeup();
  #isTrusted = false;
  /** Whether the checks of the present round have passed. */
  #isChecked = false;
  #staleHeads = 0;
  readonly #blocks: Loop = { tells: "problem", looks: new AgreeingLooks() };
  readonly #memory = new PutOffMemory();
  readonly #pasts: Loop = { tells: "pastProblem", looks: new AgreeingLooks() };
  /** Whether what the past waits for is told of one address, wallet or token alone. */
  #isPutOff = false;
  #status: WatcherStatus = {
    headHeight: undefined,
    cursorHeight: -1,
    incident: undefined,
    problem: "the node has not been asked yet",
    pastProblem: undefined,
    progressedAtMs: undefined,
    waitsFor: undefined,
  };

  constructor(parts: WatcherParts) {
    this.#parts = parts;
    this.#nodes = new CheckedNodes(parts.node, parts.secondNode);
    const { database, log, options } = parts;
    this.#catchUp = new CatchUpSource(parts.source, log);
    this.#booking = new BookingLease({ ...options, database, log });
  }

  /** The latest state; a snapshot. */
  get status(): WatcherStatus {
    return this.#status;
  }

  /** A hint that there is a block of this height. */
  wake(height: Height): void {
    if (height > this.#status.cursorHeight) this.#wakeup.wake();
  }

  /** A hint that an address was registered. */
  wakeBackfill(): void {
    this.#backfillWakeup.wake();
  }

  /** Watches until the signal fires; throws only for faults that waiting cannot cure. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const timeoutMs = await this.#guarded(signal, this.#blocks, () => this.#tryRound(signal));
      this.#update({ progressedAtMs: undefined });
      const wait = (within: AbortSignal) => this.#wakeup.wait({ signal: within, timeoutMs });
      const { lease } = this.#booking;
      // Held between rounds, too: a long poll interval is no reason for others to take over.
      await quietly(lease ? this.#booking.whileHeld(lease, signal, wait) : wait(signal));
    }
    await this.#booking.giveBack();
  }

  /** Books the past of registered addresses until the signal fires; see `run` for faults. */
  async runBackfills(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { lease } = this.#booking;
      const isOthers = lease === undefined || this.#status.incident !== undefined;
      if (isOthers) this.#update({ pastProblem: undefined });
      // Outside of the looks: one that is not taken confirms none of the others, and refutes none.
      const timeoutMs =
        isOthers || !this.#isTrusted
          ? LAG_RETRY_MS
          : await this.#guarded(signal, this.#pasts, () => this.#bookPasts(lease, signal));
      await quietly(this.#backfillWakeup.wait({ signal, timeoutMs }));
    }
  }

  /** @returns how long to wait before the next round, milliseconds */
  async #bookPasts(lease: WatchLease, signal: AbortSignal): Promise<number> {
    const { tokens, options, secondNode: second } = this.#parts;
    const metrics = { backfilled: (count: number) => this.#countPasts(count) };
    // First: pasts count the tokens that are opened, and wait for none that a node does not tell of.
    const [opened] = await Promise.allSettled([tokens.openWaiting({ signal, second })]);
    const [booked] = await Promise.allSettled([
      runBackfill({ ...this.#parts, memory: this.#memory, metrics }, { lease, signal }),
    ]);
    throwGravest([booked, opened]);
    this.#update({ pastProblem: undefined });
    return options.pollIntervalMs;
  }

  /** What ended a round is over once more is booked; what was put off is told until a round has none. */
  #countPasts(count: number): void {
    this.#parts.metrics.backfilled(count);
    if (count > 0 && !this.#isPutOff) this.#update({ pastProblem: undefined });
  }

  /** Runs one round; waits out what can pass, writes down incidents, throws the rest. */
  async #guarded(signal: AbortSignal, loop: Loop, round: () => Promise<number>): Promise<number> {
    try {
      const waitMs = await round();
      loop.looks.clear();
      return waitMs;
    } catch (error) {
      if (signal.aborted) return 0;
      // The next round reads where the ledger stands, and what halts it.
      if (["CURSOR_MOVED", "INCIDENT_OPEN"].includes(errorCode(error))) return 0;
      if (error instanceof WatchLeaseLostError) {
        this.#booking.forget(error);
        return 0;
      }
      const incident = toIncident(error);
      if (incident === undefined) this.#waitOut(error, loop);
      else if (loop.looks.isConfirmed(incident, this.#status)) await this.#halt(incident, loop);
      else this.#lookAgain(incident, loop);
      return FAULT_RETRY_MS;
    }
  }

  /** Nothing was booked; the next round reads everything anew. */
  #lookAgain({ kind, height, message }: NewIncident, loop: Loop): void {
    const { log } = this.#parts;
    const fields = { kind, height, reason: message };
    if (this.#status[loop.tells] === message) log.debug(fields, "this still cannot be true");
    else log.warn(fields, "this cannot be true, looking again");
    this.#tell(loop, message);
  }

  /** Runs a round; a fault that others may be spared keeps them from booking no longer than it must. */
  async #tryRound(signal: AbortSignal): Promise<number> {
    this.#update({ progressedAtMs: systemClock.monotonicMs() });
    this.#isChecked = false;
    try {
      return await this.#round(signal);
    } catch (error) {
      if (isOwn(error)) await this.#booking.stumbled(errorMessage(error), this.#isChecked);
      throw error;
    }
  }

  /** @returns how long to wait before the next round, milliseconds */
  async #round(signal: AbortSignal): Promise<number> {
    const { database, guard, node, identity, book, tokens, metrics, options } = this.#parts;
    await guard.keep();
    const held = await this.#booking.renew();
    const incident = await openIncident(database);
    const cursor = await readCursor(database);
    this.#update({ incident, cursorHeight: cursor.height });
    metrics.halted(incident !== undefined);
    metrics.cursor(cursor.height);
    if (incident !== undefined) {
      // Addresses are given out meanwhile: whose they are is asked for here.
      await book.refresh(database);
      // The head still moves: confirmations and lag are shown truthfully while halted.
      this.#seeHead(await node.blockNumber({ signal }));
      this.#update({ problem: undefined });
      return options.pollIntervalMs;
    }
    if (!this.#isTrusted) await this.#nodes.assertTrustworthy(identity, { signal });
    const headHeight = await readHead(node, cursor, {
      signal,
      staleHeads: this.#staleHeads,
      staleHeadsAllowed: options.staleHeadsAllowed,
    });
    this.#staleHeads = 0;
    this.#isTrusted = true;
    this.#isChecked = true;
    this.#seeHead(headHeight);
    await book.refresh(database);
    await tokens.refresh();
    // Only now: who has the lease and cannot book keeps those from it who could.
    const lease = held ?? (await this.#booking.take());
    if (lease === undefined) {
      // Another watcher books: this one shows how far that is, and stands by.
      if (!this.#booking.givesWay) this.#update({ problem: undefined, waitsFor: undefined });
      return Math.min(options.pollIntervalMs, this.#booking.leaseMs);
    }
    const common = await this.#nodes.commonHead(headHeight, { signal });
    const range = {
      previous: previousBlock(cursor),
      genesisHash: identity.genesisHash,
      to: common.height,
      readsInFlight: options.readsInFlight,
    };
    const booked = await this.#booking.whileHeld(lease, signal, (heldSignal) =>
      this.#bookRuns(lease, cursor, { ...range, signal: heldSignal }),
    );
    reportPaused(this.#parts, await tokens.checkCodes(booked, { lease, signal }));
    const isBehind = booked.height < headHeight;
    const stands = isBehind && booked.height === cursor.height;
    const waitsFor = stands ? whoLacksNext(common, cursor, headHeight) : undefined;
    this.#update({ problem: undefined, waitsFor });
    if (waitsFor === undefined) this.#booking.worked();
    else await this.#booking.stumbled(waitsFor, true);
    return isBehind ? Math.min(LAG_RETRY_MS, options.pollIntervalMs) : options.pollIntervalMs;
  }

  /** Books run after run; while one is committed, the next is read, matched and verified. */
  async #bookRuns(lease: WatchLease, cursor: WatchCursor, range: ReadRange): Promise<WatchCursor> {
    let booked = Promise.resolve(cursor);
    try {
      const isFar = range.to - cursor.height > FAR_BEHIND_BLOCKS;
      const source = isFar ? this.#catchUp : this.#parts.source;
      for await (const run of readRuns(source, range)) {
        failpoint("watcher.after-read");
        const step = this.#prepare(run, range.signal);
        // Awaited when its turn to be booked comes.
        step.catch(() => undefined);
        const from = await booked;
        booked = this.#book(lease, from, step, range.signal);
        // Awaited before the next run is booked, or below.
        booked.catch(() => undefined);
      }
    } catch (error) {
      // What was read before the fault is good; its own fault would be the earlier one.
      await booked;
      throw error;
    }
    return booked;
  }

  /** Matches a run and starts to verify it. */
  #prepare(run: readonly DataBlock[], signal: AbortSignal): Promise<PreparedRun> {
    const { database, node, secondNode, book, tokens: listed, options } = this.#parts;
    const { mostListed } = options;
    const tokenNodes = { first: node, second: secondNode };
    const explained: PrepareParts["explained"] = (payers) => explainedTakings(database, payers);
    const parts = { nodes: this.#nodes, tokenNodes, book, listed, mostListed, explained };
    return prepareRun(parts, run, { signal });
  }

  /** Commits a run, in parts where it has too many transfers. */
  async #book(
    lease: WatchLease,
    from: WatchCursor,
    prepared: Promise<PreparedRun>,
    signal: AbortSignal,
  ): Promise<WatchCursor> {
    const { run } = await prepared;
    try {
      return await this.#bookWhole(lease, from, prepared, signal);
    } catch (error) {
      if (!(error instanceof RunTooLong)) throw error;
      const parts = [run.slice(0, error.blocks), run.slice(error.blocks)];
      let booked = from;
      for (const part of parts) {
        booked = await this.#book(lease, booked, this.#prepare(part, signal), signal);
      }
      return booked;
    }
  }

  /** Commits a run; matches it again if an address registered meanwhile is touched by it. */
  async #bookWhole(
    lease: WatchLease,
    from: WatchCursor,
    prepared: Promise<PreparedRun>,
    signal: AbortSignal,
  ): Promise<WatchCursor> {
    const { database, guard, book, tokens: listed, metrics } = this.#parts;
    let step = await prepared;
    for (;;) {
      const { run, own, last, matched, nextAddressIndex } = step;
      const { walletCount, tokenCount, lastAssignment } = step;
      assert(own[0]?.height === from.height + 1, "a run begins behind the cursor");
      const isTouched = touchTest(run.slice(0, own.length));
      await step.verified;
      const { deposits, walletInflows, outflows, receivers, leftOut, ...tokens } =
        await step.tokens;
      failpoint("watcher.after-verify");
      const result = await commitBlockStep(
        database,
        {
          lease,
          assertStands: (tx) => guard.assertStands(tx),
          from: { ...from, nextAddressIndex },
          walletCount,
          tokenCount,
          lastAssignment,
          height: last.height,
          blockHash: last.hash,
          deposits: inChainOrder([...matched.deposits, ...deposits]),
          walletInflows: [...matched.walletInflows, ...walletInflows],
          outflows: [...matched.outflows, ...outflows],
          paidBy: (hash) => paidIn(own, hash),
          tokens,
        },
        ({ address }) => isTouched(address) || receivers.has(address),
      );
      book.add(result.newAddresses);
      if (result.isOtherwise) {
        await book.refresh(database);
        await listed.refresh();
      }
      if (result.outcome === "committed") {
        const { sightings } = tokens;
        reportBooked(this.#parts, { result, sightings, leftOut, height: last.height });
        const progressedAtMs = systemClock.monotonicMs();
        const { height: cursorHeight } = last;
        this.#update({ cursorHeight, problem: undefined, waitsFor: undefined, progressedAtMs });
        this.#booking.worked();
        metrics.cursor(last.height);
        if (step.fault !== undefined) throw step.fault;
        const { rewinds } = from;
        const { height, hash: blockHash } = last;
        return { height, blockHash, nextAddressIndex: book.nextIndex, rewinds };
      }
      step = await this.#prepare(run, signal);
    }
  }

  async #halt(incident: NewIncident, loop: Loop): Promise<void> {
    const { database, log, metrics } = this.#parts;
    this.#isTrusted = false;
    try {
      // Another watcher books, and looks with its own node: nothing is halted by what this one sees.
      if (!(await this.#booking.record(incident))) return this.#lookAgain(incident, loop);
      failpoint("watcher.after-incident");
      this.#staleHeads = 0;
      this.#update({ incident: await openIncident(database) });
    } catch (error) {
      // Nothing was booked; the next round meets the same cause and tries to write it again.
      this.#waitOut(error, loop);
      return;
    }
    metrics.halted(true);
    log.error(
      { kind: incident.kind, height: incident.height },
      "incident: crediting and signing are halted",
    );
  }

  /** Rethrows what waiting cannot cure. */
  #waitOut(error: unknown, loop: Loop): void {
    if (!isCurable(error)) throw error;
    if (errorCode(error) === "STALE_HEAD") this.#staleHeads += 1;
    const problem = errorMessage(error);
    const { log, metrics } = this.#parts;
    metrics.fault();
    if (this.#status[loop.tells] === problem) log.debug({ err: error }, "round failed again");
    else log.warn({ err: error }, "round failed, trying again");
    if (loop === this.#pasts) this.#isPutOff = isUntold(error);
    this.#tell(loop, problem);
  }

  #tell({ tells }: Loop, text: string): void {
    this.#isTrusted = false;
    this.#update(tells === "problem" ? { problem: text } : { pastProblem: text });
  }

  #seeHead(headHeight: Height): void {
    this.#update({ headHeight });
    this.#parts.metrics.head(headHeight);
  }

  #update(change: Partial<WatcherStatus>): void {
    this.#status = { ...this.#status, ...change };
  }
}

/** Positions of lists follow the chain, whichever asset a deposit is of. */
function inChainOrder(deposits: readonly NewDeposit[]): NewDeposit[] {
  return deposits.toSorted(
    (left, right) =>
      left.height - right.height || left.txIndex - right.txIndex || left.opIndex - right.opIndex,
  );
}

function previousBlock(cursor: WatchCursor) {
  const { height, blockHash } = cursor;
  return blockHash === undefined ? undefined : { height, hash: blockHash };
}
