/** What the ledger is told of the policy's rules for assets before anything is done by them. */
import { lookSooner } from "../../ledger/assets/sweep-due.js";
import type { TreasuryRules } from "../../ledger/policy/policy.js";
import { nameColdAddresses } from "../../ledger/treasury/moves.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";

/** Follows them from round to round. */
export class FollowedRules {
  readonly #database: SqlDatabase;
  /** None before the first round: they may have changed while no treasury ran. */
  #assets: TreasuryRules["assets"] = new Map();

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /**
   * Names the addresses of cold storage, and has looked at anew what waits of assets that came, or whose
   * minimum changed.
   */
  async follow({ assets }: TreasuryRules): Promise<void> {
    await nameColdAddresses(
      this.#database,
      [...assets].flatMap(([asset, { coldAddress: address }]) =>
        address === undefined ? [] : [{ asset, address }],
      ),
    );
    const changed = [...assets].filter(
      ([asset, { sweepMinimumUnits }]) =>
        this.#assets.get(asset)?.sweepMinimumUnits !== sweepMinimumUnits,
    );
    await lookSooner(
      this.#database,
      changed.map(([asset]) => asset),
    );
    this.#assets = assets;
  }
}
