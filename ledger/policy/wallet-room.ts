/**
 * What a wallet may still be given to pay in the windows of its own limits. Who gets a nonce takes of it, and
 * nobody else: neither who is beyond one of the limits, nor who waits for something else.
 */
import type { Address } from "../../chain/address.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { countWallet, isExceeded, isLimited, walletLimits } from "./limit-counts.js";
import { type HashedPolicy, type JudgedRequest, type Limit, nameLimit } from "./policy.js";

/** A limit of the wallet's, with what it was given in its window so far. */
interface Window {
  readonly limit: Limit;
  units: bigint;
  count: number;
}

/** Requests that may be paid as far as all other rules go. */
type Asked = JudgedRequest & { readonly id: string };

/** The room of one wallet while nonces are given. */
export class WalletRoom {
  readonly #requests: ReadonlyMap<string, Asked>;
  readonly #windows: ReadonlyMap<string, readonly Window[]>;
  readonly #held = new Map<string, string>();

  private constructor(requests: readonly Asked[], windows: ReadonlyMap<string, readonly Window[]>) {
    this.#requests = new Map(requests.map((request) => [request.id, request]));
    this.#windows = windows;
  }

  /** Counts what the wallet was given of the requests' assets, where the policy has limits of wallets. */
  static async read(
    tx: Sql,
    { policy, wallet }: { readonly policy: HashedPolicy; readonly wallet: Address },
    requests: readonly Asked[],
  ): Promise<WalletRoom> {
    const windows = new Map<string, readonly Window[]>();
    for (const asset of new Set(requests.map((request) => request.asset))) {
      const ofAsset: Window[] = [];
      for (const limit of walletLimits(policy, asset)) {
        ofAsset.push({ limit, ...(await countWallet(tx, { wallet, asset, limit })) });
      }
      windows.set(asset, ofAsset);
    }
    return new WalletRoom(requests, windows);
  }

  /** Whether all windows have room for a request; where one has not, it is held from then on. */
  hasRoom(id: string): boolean {
    const { amountUnits, windows } = this.#of(id);
    const full = windows.find(({ limit, units, count }) =>
      isExceeded(limit, { units: units + amountUnits, count: count + 1 }),
    );
    if (full === undefined) return true;
    this.#held.set(id, nameLimit(full.limit));
    return false;
  }

  /** Counts a request that is given a nonce. */
  take(id: string): void {
    const { amountUnits, windows } = this.#of(id);
    for (const window of windows) {
      window.units += amountUnits;
      window.count += 1;
    }
  }

  /** The name of the limit that a request was beyond when it was its turn; undefined for none. */
  heldBy(id: string): string | undefined {
    return this.#held.get(id);
  }

  /** None for what the treasury moves. */
  #of(id: string): { readonly amountUnits: bigint; readonly windows: readonly Window[] } {
    const request = this.#requests.get(id);
    if (request === undefined || !isLimited(request)) return { amountUnits: 0n, windows: [] };
    const { amountUnits, asset } = request;
    return { amountUnits, windows: this.#windows.get(asset) ?? [] };
  }
}
