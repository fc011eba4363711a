/** What the ledger is told of the policy's rules for assets before anything is done by them. */
import { lookSooner } from "../../ledger/assets/sweep-due.js";
import type { TreasuryRules } from "../../ledger/policy/policy.js";
import { nameColdAddresses } from "../../ledger/treasury/moves.js";
import { readDatabaseClock } from "../../ledger/database-clock.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";

/** So much slower than ours the database's clock may be from round to round. */
const STEP_MS = 60_000;

/** Follows them from round to round. */
export class FollowedRules {
  readonly #database: SqlDatabase;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** None before the first round: they may have changed while no treasury ran. */
  #assets: TreasuryRules["assets"] = new Map();
  /** What the database's clock is ahead of ours. */
  #aheadMs: number | undefined;

  constructor(database: SqlDatabase, clock: Pick<Clock, "monotonicMs">) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Names the addresses of cold storage, and has looked at anew what waits of assets that came, or whose
   * minimum changed; of all of them where the database's clock went back, by which they are due.
   */
  async follow({ assets }: TreasuryRules): Promise<void> {
    await nameColdAddresses(
      this.#database,
      [...assets].flatMap(([asset, { coldAddress: address }]) =>
        address === undefined ? [] : [{ asset, address }],
      ),
    );
    const isSetBack = await this.#isSetBack();
    const changed = [...assets].filter(
      ([asset, { sweepMinimumUnits }]) =>
        isSetBack || this.#assets.get(asset)?.sweepMinimumUnits !== sweepMinimumUnits,
    );
    await lookSooner(
      this.#database,
      changed.map(([asset]) => asset),
    );
    this.#assets = assets;
  }

  async #isSetBack(): Promise<boolean> {
    const beforeMs = this.#aheadMs;
    this.#aheadMs = (await readDatabaseClock(this.#database)) - this.#clock.monotonicMs();
    return beforeMs !== undefined && beforeMs - this.#aheadMs > STEP_MS;
  }
}
