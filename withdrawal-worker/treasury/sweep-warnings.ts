/** What the treasury's log says of sweeps and moves that wait: once, or when there are more. */
import { LRUCache } from "lru-cache";
import type { DueSweep } from "../../ledger/assets/sweep-due.js";
import type { Sweep } from "../../ledger/treasury/sweeps.js";
import type { AcceptRefusal } from "../../ledger/withdrawals/withdrawals.js";
import { unlisted } from "../signers/signer-port.js";
import { isUntaken, type SeenSweep } from "./sweep-attempts.js";
import type { Wait } from "./sweep-plan.js";
import type { TreasuryContext } from "./treasury-context.js";

/** Addresses that one line of the log names. */
const MAX_NAMED = 5;

/** Coins that are not swept now. */
export type WaitingSweep = Pick<DueSweep, "address" | "asset"> & Wait & { readonly reason: string };

/** Longest time between two rounds (`treasury.scan-interval-ms`). */
const MAX_PAUSE_MS = 600_000;

/** Addresses whose waits are remembered; of more the oldest are forgotten, and begin anew. */
const MAX_WAITING = 10_000;

/** Of one address and asset for one reason. */
interface Waiting {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Tells the log what hinders sweeps: once, or now and then, however many rounds meet it. */
export class SweepWarnings {
  readonly #log: TreasuryContext["log"];
  /** Of the last round. */
  #untakenCount = 0;
  /** It was told that there are addresses of another seed. */
  #isOtherSeedTold = false;
  /** Tokens of which it was told that they are not listed: as many as the ledger has at most. */
  readonly #unlistedTold = new Set<string>();
  /** Sweeps of which it was told that nobody knows what used their nonces; of more they are told again. */
  readonly #unexplained = new LRUCache<number, true>({ max: MAX_WAITING });
  readonly #waiting = new LRUCache<string, Waiting>({ max: MAX_WAITING });
  /** By asset and reason, as many as the assets times what a sweep can wait for: until when it is told. */
  readonly #told = new Map<string, number>();
  /** By asset, why its moves to cold storage are refused: as many likewise. */
  #coldRefusals = new Map<string, AcceptRefusal>();

  constructor(log: TreasuryContext["log"]) {
    this.#log = log;
  }

  /** Of a round's moves to cold storage those that are refused, when that begins, or for another reason. */
  tellRefused(refusals: ReadonlyMap<string, AcceptRefusal>): void {
    for (const [asset, refusal] of refusals) {
      if (this.#coldRefusals.get(asset) === refusal) continue;
      this.#log.warn({ asset, refusal }, "a move to cold storage is refused");
    }
    this.#coldRefusals = new Map(refusals);
  }

  /** Of the sweeps of a round those that no block takes, when there are more than in the round before. */
  tellUntaken(seen: readonly SeenSweep[]): void {
    const untaken = seen.filter(isUntaken);
    if (untaken.length > this.#untakenCount) {
      const addresses = untaken.slice(0, MAX_NAMED).map(({ sweep }) => sweep.address);
      const what = "no block takes sweeps at their price: they wait for it to fall, or for coins";
      this.#log.warn({ count: untaken.length, addresses }, what);
    }
    this.#untakenCount = untaken.length;
  }

  /** Of each once: why what used its nonce cannot be told. */
  tellUnexplained(
    reason: string | undefined,
    sweeps: readonly Pick<Sweep, "id" | "address">[],
  ): void {
    const others = sweeps.filter(({ id }) => !this.#unexplained.has(id));
    for (const { id } of others) this.#unexplained.set(id, true);
    if (others.length === 0) return;
    const addresses = others.slice(0, MAX_NAMED).map(({ address }) => address);
    const what = "used nonces of sweeps cannot be explained";
    this.#log.warn({ reason, count: others.length, addresses }, what);
  }

  /** Once: they are looked at for as long as anybody pays to them. */
  tellOtherSeed(others: readonly { readonly entry: Pick<DueSweep, "address"> }[]): void {
    if (others.length === 0 || this.#isOtherSeedTold) return;
    this.#isOtherSeedTold = true;
    const addresses = others.slice(0, MAX_NAMED).map(({ entry }) => entry.address);
    const what = "addresses of another seed than config/deposit.seed are not swept";
    this.#log.warn({ count: others.length, addresses }, what);
  }

  /** Once of each, as above; of what the policy has swept alone. */
  tellUnlisted(others: readonly { readonly entry: Pick<DueSweep, "asset"> }[]): void {
    for (const { entry } of others) {
      const { asset } = entry;
      if (this.#unlistedTold.has(asset)) continue;
      this.#unlistedTold.add(asset);
      this.#log.warn({ asset, reason: unlisted(asset) }, "a token is not swept");
    }
  }

  /**
   * Of a round's waits those that somebody may have to act on, by asset and reason: once an address has
   * waited so long, and again when they begin anew.
   * @param nowMs monotonic
   */
  tellWaiting(entries: readonly WaitingSweep[], nowMs: number): void {
    for (const [key, untilMs] of this.#told) if (untilMs < nowMs) this.#told.delete(key);
    const long = entries.filter((entry) => this.#isLong(entry, nowMs));
    for (const { asset, reason, delayMs } of long) {
      const key = `${asset} ${reason}`;
      const isTold = this.#told.has(key);
      this.#told.set(key, lookedAtBy(nowMs, delayMs));
      if (isTold) continue;
      const alike = long.filter((each) => each.asset === asset && each.reason === reason);
      const addresses = alike.slice(0, MAX_NAMED).map(({ address }) => address);
      const what = "what lies on deposit addresses waits to be swept";
      this.#log.warn({ asset, reason, count: alike.length, addresses }, what);
    }
  }

  #isLong(entry: WaitingSweep, nowMs: number): boolean {
    const { address, asset, reason, delayMs, tellAfterMs = Infinity } = entry;
    if (tellAfterMs === 0 || tellAfterMs === Infinity) return tellAfterMs === 0;
    const key = `${asset} ${address} ${reason}`;
    const before = this.#waiting.get(key);
    const sinceMs = before === undefined || before.untilMs < nowMs ? nowMs : before.sinceMs;
    this.#waiting.set(key, { sinceMs, untilMs: lookedAtBy(nowMs, delayMs) });
    return nowMs - sinceMs >= tellAfterMs;
  }
}

/** Whoever still waits was looked at anew by then; rounds come late where there is much to do. */
function lookedAtBy(nowMs: number, delayMs: number): number {
  return nowMs + 2 * Math.max(delayMs, MAX_PAUSE_MS);
}
