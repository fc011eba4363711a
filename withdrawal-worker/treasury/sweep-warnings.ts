/** What the treasury's log says of sweeps and moves that wait: once, or when there are more. */
import type { DueSweep } from "../../ledger/assets/sweep-due.js";
import type { AcceptRefusal } from "../../ledger/withdrawals/withdrawals.js";
import { unlisted } from "../signers/signer-port.js";
import { isUntaken, type SeenSweep } from "./sweep-attempts.js";
import type { TreasuryContext } from "./treasury-context.js";

/** Addresses that one line of the log names. */
const MAX_NAMED = 5;

/** What was told already. */
export class SweepWarnings {
  readonly #log: TreasuryContext["log"];
  /** Of the last round. */
  #untakenCount = 0;
  /** It was told that there are addresses of another seed. */
  #isOtherSeedTold = false;
  /** Tokens of which it was told that they are not listed: as many as the ledger has at most. */
  readonly #unlistedTold = new Set<string>();
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
}
