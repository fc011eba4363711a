/**
 * Who owns what, told by the chain alone: what came for each customer, and what was paid to whom. Amounts
 * of requests are unique, so that each payment on the chain is known for the request that it paid.
 */
import type { Address } from "../../../../chain/address.js";
import { present } from "../../../../chain/errors.js";
import type { FakeChain } from "../../../helpers/chains/fake-chain.js";
import { NATIVE_ASSET } from "../../../../ledger/journal/accounts.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { PLAIN, WALLETS } from "./house-of-wallets.js";

/** What is known of a request. */
export interface Asked {
  readonly id: WithdrawalId;
  readonly key: string;
  readonly customer: string;
  readonly asset: string;
  readonly to: Address;
  readonly amountUnits: bigint;
}

/** Coins or units that moved on the chain. */
export interface Moved {
  readonly asset: string;
  readonly from: Address | undefined;
  readonly to: Address;
  readonly units: bigint;
  readonly height: number;
}

/** Everything that moved on the chain as it is, but fees. */
export function movesOn(chain: FakeChain): readonly Moved[] {
  return chain.blocks.flatMap(({ height, transactions, blockChanges }) => [
    ...[...transactions.flatMap(({ changes }) => changes), ...blockChanges].flatMap((each) => {
      const { reason, from, to, amountAtoken: units, effective } = each;
      const isMove = reason !== "FEE" && effective && to !== undefined && units > 0n;
      return isMove ? [{ asset: NATIVE_ASSET, from, to, units, height }] : [];
    }),
    ...transactions.flatMap(({ tokenMoves = [] }) =>
      tokenMoves.map(({ from, to, units }) => ({ asset: PLAIN, from, to, units, height })),
    ),
  ]);
}

const isWallet = (address: Address | undefined) =>
  address !== undefined && WALLETS.includes(address);

/** Moves that paid a request. */
export function paymentsOf(asked: Asked, moves: readonly Moved[]): readonly Moved[] {
  return moves.filter(
    ({ asset, from, to, units }) =>
      isWallet(from) && asset === asked.asset && to === asked.to && units === asked.amountUnits,
  );
}

/** Whether coins of a hot wallet at a deposit address are the exchange's. */
export function isGas(
  { asset, from, to, units }: Omit<Moved, "height">,
  asked: readonly Asked[],
): boolean {
  return (
    isWallet(from) &&
    !asked.some((one) => one.asset === asset && one.to === to && one.amountUnits === units)
  );
}

/**
 * What each customer should have by the chain alone, by customer and asset.
 * @param owners of deposit addresses
 */
export function ownedBy(
  moves: readonly Moved[],
  owners: ReadonlyMap<Address, string>,
  asked: readonly Asked[],
): Map<string, bigint> {
  const owned = new Map<string, bigint>();
  const add = (customer: string, asset: string, units: bigint) => {
    const key = `${customer} ${asset}`;
    owned.set(key, (owned.get(key) ?? 0n) + units);
  };
  for (const { asset, from, to, units } of moves) {
    if (!owners.has(to)) continue;
    if (isGas({ asset, from, to, units }, asked)) continue;
    add(present(owners.get(to), "an owner"), asset, units);
  }
  for (const one of asked) {
    for (const { units } of paymentsOf(one, moves)) add(one.customer, one.asset, -units);
  }
  return owned;
}
