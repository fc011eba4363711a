/**
 * One round of the treasury: ends what the chain has decided, carries sweeps on, begins new ones,
 * keeps the bands. Every step is a commit of its own; a round that dies anywhere is done by the next.
 */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import { TRANSFER_GAS } from "../../chain/networks.js";
import { readCursor, type WatchCursor } from "../../ledger/watch/watch-cursor.js";
import { openIncident } from "../../ledger/incidents.js";
import { stops } from "../../ledger/kill-switch/kill-switch-level.js";
import type { HashedPolicy, TreasuryRules } from "../../ledger/policy/policy.js";
import { endMoves } from "../../ledger/treasury/moves.js";
import { type DueSweep, putOff, readDue } from "../../ledger/assets/sweep-due.js";
import {
  freezeSweep,
  intendSweeps,
  markSweepsSent,
  type NewSweep,
  readMovingSweeps,
  type Sweep,
  voidSweep,
} from "../../ledger/treasury/sweeps.js";
import { strandMoves } from "../../ledger/treasury/stranded-moves.js";
import { endBooked, minedOf } from "../../ledger/treasury/mined-sweeps.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { choosePrice, withTokenMargin } from "../gas.js";
import { untoldOf } from "../lane/receipts.js";
import type { WalletView } from "../lane/wallet-node.js";
import { judgeLost } from "../kept-blocks.js";
import { meaningOfSend, verdictOnConsumedNonce } from "../withdrawal-state.js";
import { endUnbanded, keepBands } from "./bands.js";
import { FollowedRules } from "./followed-rules.js";
import { withoutRegained } from "./lost-bytes.js";
import { freeOf, sendVanished } from "./lost-sweeps.js";
import { maySend, payableWallets } from "./may-send.js";
import { remembered } from "./remembered.js";
import {
  firstAttempt,
  nextAttempt,
  type SeenSweep,
  signedSeconds,
  storeAttempts,
} from "./sweep-attempts.js";
import { attendGas, gasPlaces, giveMore, GIVEN_UP_DELAY_MS, PATIENCE_MS } from "./sweep-gas.js";
import { readAddressStates } from "./sweep-node.js";
import { decideSweep } from "./sweep-plan.js";
import { SweepWarnings, type WaitingSweep } from "./sweep-warnings.js";
import { type TreasuryContext, TREASURY_FAILPOINTS } from "./treasury-context.js";

/** A token whose gas has to wait for that of others is looked at again after it. */
const GAS_QUEUE_DELAY_MS = 60_000;

/** Addresses that are looked at in one round, beside those under way. */
const LOOKED_AT_ONCE = 200;

/** Tokens' estimates asked for at once. */
const ESTIMATES_AT_ONCE = 8;

/** What is known for one round. */
interface SweepRound {
  readonly policy: HashedPolicy;
  readonly rules: TreasuryRules;
  readonly view: WalletView;
  /** Where the watcher stood before the chain was looked at. */
  readonly booked: WatchCursor;
  /** Losses of blocks that it had gone back for by then. */
  readonly rewinds: number;
  /** The chain is looked at no earlier than where the ledger is: a used nonce that is free was lost. */
  readonly isAsBooked: boolean;
  /** Active wallets of this home that are not frozen and have their key: only they are given coins. */
  readonly wallets: readonly Address[];
  readonly maySign: boolean;
  /** Nothing is asked for of hot wallets: the home's file may say so alone. */
  readonly isStopped: boolean;
  readonly signal: AbortSignal;
}

/** Carries the treasury's work on. */
export class Sweeper {
  readonly #context: TreasuryContext;
  readonly #followed: FollowedRules;
  readonly #warnings: SweepWarnings;
  #lastHeight = 0;
  #rewinds = 0;
  /** Bounded by `remembered`: when bytes were last sent, and since when a receipt is missing. */
  #sentMs = new Map<number, number>();
  #missingSinceMs = new Map<number, number>();
  /** Bounded likewise: how many attempts each has, and the height at which the newest was first seen. */
  #newest = new Map<number, { readonly count: number; readonly height: Height }>();
  /** Moves that could not end in the last round. */
  #refused: ReadonlySet<number> = new Set();

  constructor(context: TreasuryContext) {
    this.#context = context;
    this.#followed = new FollowedRules(context.database, context.clock);
    this.#warnings = new SweepWarnings(context.log);
  }

  /**
   * One round.
   * @returns true when more may be begun at once
   * @throws NodeFault, RpcError, WorkerError, database faults: the next round does it again
   */
  async round(signal: AbortSignal): Promise<boolean> {
    const { database, policy, killSwitch } = this.#context;
    await this.#endMoves();
    await this.#strandMoves();
    // Also one that is no recovery: what the chain shows is in doubt, and heights with it.
    if ((await openIncident(database)) !== undefined) {
      this.#lastHeight = 0;
      return false;
    }
    const current = await policy.current();
    await endUnbanded(this.#context, current);
    const rules = current.policy.treasury;
    if (rules === undefined) return false;
    const { level } = await killSwitch.read();
    if (stops(level, "stop-broadcast")) return false;
    const wallets = await payableWallets(this.#context);
    const booked = await readCursor(database);
    const { rewinds } = booked;
    // A chain that came back shorter, and that the watcher went back on between two rounds, is no late node.
    if (rewinds !== this.#rewinds) this.#lastHeight = 0;
    this.#rewinds = rewinds;
    const view = await this.#view(wallets, signal);
    if (view === undefined) return false;
    const allowed = { maySign: !stops(level, "stop-sign"), isStopped: stops(level, "stop-new") };
    const looked = { view, booked, rewinds, isAsBooked: view.height >= booked.height };
    const round: SweepRound = { policy: current, rules, ...looked, wallets, ...allowed, signal };
    await this.#followed.follow(rules);
    const moving = (await this.#advance(round)).filter(
      ({ asset, isLate }) => rules.assets.has(asset) && !isLate,
    );
    if (!round.maySign) return false;
    const isMore = await this.#begin(round, moving);
    const look = () => this.#view(wallets, signal);
    this.#warnings.tellRefused(await keepBands(this.#context, { ...round, look }));
    return isMore;
  }

  /** @returns undefined of a node below what was seen: it shows old nonces and balances */
  async #view(wallets: readonly Address[], signal: AbortSignal): Promise<WalletView | undefined> {
    const view = await this.#context.node.view(wallets[0] ?? ZERO_ADDRESS, { signal });
    if (view.height < this.#lastHeight) return undefined;
    this.#lastHeight = view.height;
    return view;
  }

  /** What the books refuse is told when it begins, and keeps nothing else. */
  async #endMoves(): Promise<void> {
    const { database, log } = this.#context;
    const refused = new Set<number>();
    await endMoves(database, {
      onRefused: ({ moveId, withdrawalId, error }) => {
        refused.add(moveId);
        if (this.#refused.has(moveId)) return;
        const what = "a move of the treasury cannot end by the books: it stays in transit";
        log.error({ move: moveId, withdrawal: withdrawalId, reason: error.message }, what);
      },
    });
    this.#refused = refused;
  }

  /** Each is told once: it has the state from then on. */
  async #strandMoves(): Promise<void> {
    const { database, log } = this.#context;
    for (const { amountUnits, ...move } of await strandMoves(database)) {
      const what =
        "a move of the treasury has a nonce of a retired wallet: it is in transit until that is used";
      log.warn({ ...move, amountUnits: amountUnits.toString() }, what);
    }
  }

  /** @returns the sweeps that are under way */
  async #advance(round: SweepRound): Promise<readonly Sweep[]> {
    const { database, settings } = this.#context;
    const window = { assets: [...round.rules.assets.keys()], limit: settings.sweepsAtOnce };
    const sweeps = await readMovingSweeps(database, window);
    const seen = await this.#see(sweeps, round);
    this.#forgetOthers(sweeps);
    await sendVanished(
      this.#context,
      seen
        // On its own nonce nothing has vanished.
        .filter(({ sweep: { gas }, state }) => gas?.nonce !== state.nonce)
        .map(({ sweep: { address, nextNonce }, state }) => ({ address, nextNonce, state })),
      round,
    );
    await attendGas(this.#context, seen, round);
    await giveMore(this.#context, seen, round);
    await this.#freezeUsed(seen, round);
    if (round.maySign) {
      const ready = await this.#see(
        (await readMovingSweeps(database, window)).filter(({ state }) => state === "ready"),
        round,
      );
      const first = ready.flatMap((each) => firstAttempt(this.#context, each, round) ?? []);
      const next = seen.flatMap((each) => {
        const sinceHeight = this.#seenSince(each, round);
        return nextAttempt(this.#context, { ...each, sinceHeight }, round) ?? [];
      });
      await storeAttempts(database, [...first, ...next]);
      const isSigned = new Set(first.map(({ sweepId }) => sweepId));
      await this.#giveUp(
        ready.filter(({ sweep }) => !isSigned.has(sweep.id)),
        round,
      );
    }
    const signed = await readMovingSweeps(database, window);
    await this.#send(signed, round);
    this.#warnings.tellUntaken(seen);
    return signed;
  }

  async #see(sweeps: readonly Sweep[], { view, signal }: SweepRound): Promise<SeenSweep[]> {
    const addresses = sweeps.map(({ address }) => address);
    const states = await readAddressStates(this.#context.rpc, addresses, view.blockHash, {
      signal,
    });
    return sweeps.flatMap((sweep, index) => {
      const state = states[index];
      return state === undefined ? [] : [{ sweep, state }];
    });
  }

  #forgetOthers(ofRound: readonly Sweep[]): void {
    const ids = new Set(ofRound.map(({ id }) => id));
    this.#sentMs = remembered(this.#sentMs, ids);
    this.#missingSinceMs = remembered(this.#missingSinceMs, ids);
    this.#newest = remembered(this.#newest, ids);
  }

  /** Height at which a sweep's newest attempt was first seen; of a chain that came back shorter, anew. */
  #seenSince({ sweep: { id, attempts } }: SeenSweep, { view: { height } }: SweepRound): Height {
    const { length: count } = attempts;
    const known = this.#newest.get(id);
    if (known?.count === count && known.height <= height) return known.height;
    this.#newest.set(id, { count, height });
    return height;
  }

  /** A used nonce without a receipt of ours is never signed over. */
  async #freezeUsed(seen: readonly SeenSweep[], round: SweepRound): Promise<void> {
    const { view, rewinds, signal } = round;
    const { database, node, clock, settings } = this.#context;
    const isUsed = ({ sweep: { gas, state }, state: { nonce } }: SeenSweep) =>
      gas !== undefined && state !== "frozen" && nonce > gas.nonce;
    const used = await withoutRegained(this.#context, seen.filter(isUsed), round);
    if (used.length === 0) return;
    const hashes = used.flatMap(({ sweep }) => sweep.attempts.map(({ hash }) => hash));
    // An answer says nothing of the time behind its question: this process may have stood still since.
    const askedMs = clock.monotonicMs();
    const receipts = await node.receipts(hashes, { signal });
    const mined = used.flatMap(({ sweep }) => minedOf(sweep, receipts.byHash));
    const booked = mined.filter(({ height }) => height <= round.booked.height);
    if (booked.length > 0 && (await this.#isBooked(round))) {
      await endBooked(database, booked, rewinds);
    }
    const lost: Sweep[] = [];
    for (const { sweep } of used) {
      const { id, attempts } = sweep;
      const hasReceipt = minedOf(sweep, receipts.byHash).length > 0;
      const untold = hasReceipt ? undefined : untoldOf(attempts, receipts);
      // The node has the receipt, only too large for an answer: it is not missing.
      if (untold === "too-large") this.#missingSinceMs.delete(id);
      if (untold !== undefined) continue;
      // A node that has not come to the block can have none: from its next look on it is waited for.
      const isLate = receipts.height < view.height;
      if (hasReceipt) this.#missingSinceMs.delete(id);
      else if (!isLate && !this.#missingSinceMs.has(id)) this.#missingSinceMs.set(id, askedMs);
      const verdict = verdictOnConsumedNonce({
        hasReceipt,
        receiptsHeight: receipts.height,
        nonceHeight: view.height,
        missingMs: askedMs - (this.#missingSinceMs.get(id) ?? askedMs),
        patienceMs: settings.receiptPatienceMs,
      });
      if (verdict === "freeze") lost.push(sweep);
    }
    if (lost.length > 0) await this.#freezeLost(lost, signal);
  }

  /** Of sweeps without receipts those that the node denies. */
  async #freezeLost(lost: readonly Sweep[], signal: AbortSignal): Promise<void> {
    const { database, node, log } = this.#context;
    const kept = await node.keptBlocks({ signal });
    const { denied, unkept, reason: unkeptReason } = judgeLost(lost, kept, signedSeconds);
    this.#warnings.tellUnexplained(unkeptReason, unkept);
    for (const { id, address, gas } of denied) {
      const reason = `nonce ${gas?.nonce} was used by a transaction that this kit did not sign`;
      if (await freezeSweep(database, id, reason)) {
        // Once a person lets it go on it is waited for anew.
        this.#missingSinceMs.delete(id);
        log.error({ sweep: id, address, reason }, "a sweep is frozen");
      }
    }
  }

  /** Whether the chain has what is booked: other blocks of these heights may move what those did not. */
  async #isBooked({ booked: { height, blockHash }, signal }: SweepRound): Promise<boolean> {
    const header = await this.#context.evm.getBlockHeader(height, { signal });
    return header?.hash === blockHash;
  }

  /**
   * What the signer refuses for long ends, since nothing is signed for it: its asset may have left the
   * policy. One whose nonce was used meanwhile stays, and freezes.
   */
  async #giveUp(unsigned: readonly SeenSweep[], { wallets }: SweepRound): Promise<void> {
    const { database, log } = this.#context;
    if (wallets.length === 0) return;
    for (const { sweep, state } of unsigned) {
      const { id, address, ageMs, gas } = sweep;
      if (gas === undefined || ageMs <= PATIENCE_MS || state.nonce > gas.nonce) continue;
      const reason = `nothing was signed for nonce ${gas.nonce}`;
      if (await voidSweep(database, id, { reason, delayMs: GIVEN_UP_DELAY_MS })) {
        log.warn({ sweep: id, address, reason }, "a sweep is given up");
      }
    }
  }

  /** The stored bytes, as often as needed. */
  async #send(sweeps: readonly Sweep[], { signal }: SweepRound): Promise<void> {
    const { database, node, clock, settings, log } = this.#context;
    const nowMs = clock.monotonicMs();
    const late = sweeps.flatMap(({ id, state, attempts }) => {
      const last = attempts.at(-1);
      const sentMs = this.#sentMs.get(id);
      if (last === undefined || (state !== "signed" && state !== "sent")) return [];
      const isNew = last.ageMs < nowMs - (sentMs ?? Number.NEGATIVE_INFINITY);
      const isLate = sentMs === undefined || nowMs - sentMs >= settings.rebroadcastIntervalMs;
      return state === "signed" || isNew || isLate ? [{ id, attempts }] : [];
    });
    if (late.length === 0 || !(await maySend(this.#context))) return;
    const wallets = await payableWallets(this.#context);
    // The newest that may go out: where an earlier one is for the only wallet left, it is worth as much.
    const due = late.flatMap(({ id, attempts }) => {
      const newest = attempts.findLast(({ wallet }) => wallets.includes(wallet));
      return newest === undefined ? [] : [{ id, ...newest }];
    });
    if (due.length === 0) return;
    const outcomes = await node.send(
      due.map(({ raw }) => raw),
      { signal },
    );
    failpoint(TREASURY_FAILPOINTS.afterSend);
    const sent: number[] = [];
    due.forEach(({ id, hash }, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined) return;
      this.#sentMs.set(id, nowMs);
      const meaning = meaningOfSend(outcome, hash);
      if (meaning.kind === "sent") sent.push(id);
      else log.info({ sweep: id, answer: meaning.kind }, "a node did not take a sweep");
    });
    await markSweepsSent(database, sent);
  }

  /** Begins sweeps of what is due, as many as may be under way. @returns true when more is due */
  async #begin(round: SweepRound, moving: readonly Sweep[]): Promise<boolean> {
    const { database, settings, clock, log } = this.#context;
    const room = settings.sweepsAtOnce - moving.length;
    let gasRoom =
      gasPlaces(settings.sweepsAtOnce) - moving.filter(({ state }) => state === "needs-gas").length;
    const [wallet] = round.wallets;
    if (room <= 0 || wallet === undefined) return false;
    const { height } = round.view;
    const due = await readDue(database, { height, limit: LOOKED_AT_ONCE });
    if (due.length === 0) return false;
    const begun = new Map<Address, NewSweep>();
    const later: (DueSweep & { readonly delayMs: number })[] = [];
    const waiting: WaitingSweep[] = [];
    const looked = await this.#look(due, wallet, round);
    this.#warnings.tellOtherSeed(looked.filter(({ facts: { hasKey } }) => !hasKey));
    this.#warnings.tellUnlisted(
      looked.filter(({ facts }) => facts.rules !== undefined && !facts.isListed),
    );
    const vanished = await sendVanished(
      this.#context,
      looked.map(({ entry: { address, nextNonce }, facts: { state } }) => {
        return { address, nextNonce, state };
      }),
      round,
    );
    const isFree = freeOf(vanished, round);
    for (const { facts: seen, entry } of looked) {
      // The same address' next asset waits for the one that is under way.
      if (begun.has(entry.address) || begun.size >= room) continue;
      // Coins are there to use it; a token may have to be given gas first, for a nonce that is known.
      const isNew = entry.contract === undefined && isFree(entry.address);
      const facts = isNew ? { ...seen, due: { ...seen.due, nextNonce: seen.state.nonce } } : seen;
      const decision = decideSweep(facts);
      if (decision.kind === "sweep") {
        if (decision.sweep.gas === undefined) gasRoom -= 1;
        if (decision.sweep.gas !== undefined || gasRoom >= 0) {
          begun.set(entry.address, decision.sweep);
        } else later.push({ ...entry, delayMs: GAS_QUEUE_DELAY_MS });
      } else {
        later.push({ ...entry, delayMs: decision.delayMs });
        waiting.push({ ...entry, ...decision });
        log.debug({ address: entry.address, reason: decision.reason }, "not swept now");
      }
    }
    this.#warnings.tellWaiting(waiting, clock.monotonicMs());
    await putOff(database, later, { height, rewinds: round.rewinds });
    const written = await intendSweeps(database, [...begun.values()], height);
    if (written > 0) failpoint(TREASURY_FAILPOINTS.afterIntent);
    return due.length === LOOKED_AT_ONCE && (written > 0 || later.length > 0);
  }

  async #look(due: readonly DueSweep[], wallet: Address, round: SweepRound) {
    const { rpc, evm, signer } = this.#context;
    const { view, signal, rules } = round;
    const addresses = due.map(({ address }) => address);
    const states = await readAddressStates(rpc, addresses, view.blockHash, { signal });
    const tokens = due.flatMap((entry) => (entry.contract === undefined ? [] : [entry]));
    const balances = await evm.tokenBalances(
      tokens.map(({ contract, address: account }) => ({
        token: contract ?? ZERO_ADDRESS,
        account,
        at: view.blockHash,
      })),
      { signal },
    );
    const unitsOf = new Map(tokens.map((entry, index) => [entry, balances[index]]));
    const gasLimits = await this.#gasOfTokens(unitsOf, wallet, round);
    return due.flatMap((entry, index) => {
      const state = states[index];
      if (state === undefined) return [];
      const isToken = entry.contract !== undefined;
      return [
        {
          entry,
          facts: {
            due: entry,
            hasKey: signer.addressAt(entry.index) === entry.address,
            isListed: signer.isListed(entry.asset, entry.contract),
            state,
            units: isToken ? unitsOf.get(entry) : state.balanceAtoken,
            gasLimit: isToken ? gasLimits.get(entry) : TRANSFER_GAS,
            gasPriceAtoken: this.#price(round),
            rules: rules.assets.get(entry.asset),
            topUpMaxAtoken: rules.topUpMaxAtoken,
            wallet,
          },
        },
      ];
    });
  }

  /** What a transfer of all units takes; none where the node does not say. */
  async #gasOfTokens(
    unitsOf: ReadonlyMap<DueSweep, bigint | undefined>,
    wallet: Address,
    { view, rules, signal }: SweepRound,
  ): Promise<ReadonlyMap<DueSweep, bigint | "refused">> {
    const { node, settings } = this.#context;
    const worth = [...unitsOf].flatMap(([entry, units = 0n]) => {
      const minimum = rules.assets.get(entry.asset)?.sweepMinimumUnits;
      return minimum === undefined || units === 0n || units < minimum ? [] : [{ entry, units }];
    });
    const limits = new Map<DueSweep, bigint | "refused">();
    for (let start = 0; start < worth.length; start += ESTIMATES_AT_ONCE) {
      const part = worth.slice(start, start + ESTIMATES_AT_ONCE);
      const meanings = await Promise.all(
        part.map(({ entry, units: amountUnits }) =>
          node.estimate(
            entry.address,
            [
              {
                to: entry.contract ?? ZERO_ADDRESS,
                valueAtoken: 0n,
                transfer: { to: wallet, amountUnits },
                // The address may have no coins yet: it is given gas by what this answers.
                gasPriceAtoken: 0n,
                gasMax: settings.gas.limitMax,
              },
            ],
            { signal, at: view.height },
          ),
        ),
      );
      part.forEach(({ entry }, index) => {
        const meaning = meanings[index]?.[0];
        if (meaning?.kind === "refused-by-destination") limits.set(entry, "refused");
        if (meaning?.kind !== "payable") return;
        const gas = withTokenMargin(meaning.gas, settings.gas);
        limits.set(entry, gas <= settings.gas.limitMax ? gas : "refused");
      });
    }
    return limits;
  }

  #price({ view }: SweepRound): bigint {
    return choosePrice(view.suggestedPriceAtoken, this.#context.settings.gas);
  }
}
