/**
 * Pure: what contracts claim against what the balances of our addresses did. Only what arrived is a
 * deposit, and only what left is an outflow that nobody asked for; what a contract claimed beyond it is
 * recorded, and what came unsaid goes to suspense.
 */
import type { Address } from "../../chain/address.js";
import { atMostWord, type Hash32, type Height } from "../../chain/hex.js";
import type { NewSighting, SightingReason } from "../../ledger/assets/token-sightings.js";
import { type CustomerId, UNASSIGNED } from "../../ledger/journal/accounts.js";
import type { Outflow, Payer, WalletInflow } from "../../ledger/watch/flows.js";
import type { TokenSurplus } from "../../ledger/blocks/block-step.js";
import type { NewDeposit } from "../../ledger/blocks/new-deposits.js";
import type { TokenSide } from "./token-side.js";

/** What one block did to one token at one of our addresses. */
export interface TokenTouch {
  readonly asset: string;
  readonly contract: Address;
  readonly address: Address;
  readonly height: Height;
  readonly blockHash: Hash32;
  /** In the order of the block; not empty. */
  readonly sides: readonly TokenSide[];
}

/** Balances around the block; undefined where the contract does not tell. */
export interface TokenBalances {
  readonly beforeUnits: bigint | undefined;
  readonly afterUnits: bigint | undefined;
}

/** What is to be booked. */
export interface TokenVerdicts {
  readonly deposits: NewDeposit[];
  readonly walletInflows: WalletInflow[];
  readonly outflows: Outflow[];
  readonly sightings: NewSighting[];
  readonly surpluses: TokenSurplus[];
}

/** Which addresses are whose. */
export interface TokenOwners {
  customerOf(address: Address): CustomerId | undefined;
  /** See `Watched`; undefined for an address that is no hot wallet. */
  walletFrom(address: Address): Height | undefined;
  /** Whether something explains what a transaction took of an address; asked of `doubtfulPayers` alone. */
  isExplained(payer: Payer): boolean;
}

/** What a side is part of: one token at one of our addresses in one block. */
export function touchKey({ height, contract, address }: TokenSide): string {
  return `${height} ${contract} ${address}`;
}

/** Sides of blocks, taken together by block, token and address, in the order of the chain. */
export function touchesOf(sides: readonly TokenSide[]): TokenTouch[] {
  const touches = new Map<string, TokenTouch & { readonly sides: TokenSide[] }>();
  for (const side of sides) {
    const { asset, contract, address, height, blockHash } = side;
    const key = touchKey(side);
    const touch = touches.get(key);
    if (touch === undefined) {
      touches.set(key, { asset, contract, address, height, blockHash, sides: [side] });
    } else {
      touch.sides.push(side);
    }
  }
  return [...touches.values()].toSorted((left, right) => left.height - right.height);
}

/** No verdicts yet. */
export function noVerdicts(): TokenVerdicts {
  return { deposits: [], walletInflows: [], outflows: [], sightings: [], surpluses: [] };
}

/** What came of claims. */
export interface Arrivals {
  /** Of each move what arrived, in their order; nothing of one that takes. */
  readonly arrivedUnits: readonly bigint[];
  /** What the balance rose by beyond all claims; negative where more is gone than they say. */
  readonly leftUnits: bigint;
}

/**
 * Gives what came to those who claim it, one after the other. Who takes is taken at its word: what it
 * took beyond it, or not, shows as too little or too much that arrived, or in the reconciliation. What is
 * only said to have left shows in `leftUnits`, and `withoutUnmoved` takes it out first.
 * @param moves signed, all of one token at one address in one block, in the order of the block
 * @param changeUnits balance after the block less the one before it
 */
export function arrivalsOf(
  moves: readonly { readonly units: bigint }[],
  changeUnits: bigint,
): Arrivals {
  const spentUnits = moves.reduce((sum, { units }) => (units < 0n ? sum - units : sum), 0n);
  let leftUnits = changeUnits + spentUnits;
  const arrivedUnits = moves.map(({ units }) => {
    if (units <= 0n || leftUnits <= 0n) return 0n;
    const arrived = leftUnits < units ? leftUnits : units;
    leftUnits -= arrived;
    return arrived;
  });
  return { arrivedUnits, leftUnits };
}

/**
 * Transactions that are said to have taken more of one of our addresses than its balance fell by, counting
 * what came in. None where the contract does not tell the balance.
 */
export function doubtfulPayers(
  { sides, address: wallet }: TokenTouch,
  { beforeUnits, afterUnits }: TokenBalances,
): readonly Payer[] {
  if (beforeUnits === undefined || afterUnits === undefined) return [];
  if (arrivalsOf(sides, afterUnits - beforeUnits).leftUnits <= 0n) return [];
  return sides.filter(({ units }) => units < 0n).map(({ txHash: hash }) => ({ wallet, hash }));
}

/** Adds what a touch comes to. */
export function judgeTouch(
  touch: TokenTouch,
  { beforeUnits, afterUnits }: TokenBalances,
  owners: TokenOwners,
  verdicts: TokenVerdicts,
): void {
  if (beforeUnits === undefined || afterUnits === undefined) {
    const incoming = touch.sides.filter(({ units }) => units > 0n);
    addOutflows(touch, touch.sides, owners, verdicts);
    for (const side of incoming) verdicts.sightings.push(sightingOf(side, "UNREADABLE"));
    return;
  }
  const sides = withoutUnmoved(touch, { beforeUnits, afterUnits }, owners, verdicts);
  addOutflows(touch, sides, owners, verdicts);
  const { arrivedUnits: arrivals, leftUnits } = arrivalsOf(sides, afterUnits - beforeUnits);
  for (const [index, side] of sides.entries()) {
    const arrivedUnits = arrivals[index] ?? 0n;
    if (arrivedUnits > 0n) addInflow({ ...side, units: arrivedUnits }, owners, verdicts);
    if (side.units <= 0n || arrivedUnits === side.units) continue;
    const missing = { ...side, units: side.units - arrivedUnits };
    verdicts.sightings.push(sightingOf(missing, arrivedUnits > 0n ? "SHORTFALL" : "NOT_ARRIVED"));
  }
  const [first] = touch.sides;
  if (leftUnits > 0n && first !== undefined) {
    const { asset, address, height } = touch;
    const isHotWallet = owners.walletFrom(address) !== undefined;
    const { txHash } = first;
    verdicts.surpluses.push({
      asset,
      address,
      isHotWallet,
      amountUnits: atMostWord(leftUnits),
      height,
      txHash,
    });
  }
}

/**
 * The sides of a touch without what is only said to have left, which is recorded: a contract that logs it at
 * will would freeze all payments, and at a deposit address make a surplus of units that do not exist. A
 * payment or a sweep of ours is booked by its log, and stays.
 */
function withoutUnmoved(
  touch: TokenTouch,
  balances: { readonly beforeUnits: bigint; readonly afterUnits: bigint },
  owners: TokenOwners,
  verdicts: TokenVerdicts,
): readonly TokenSide[] {
  if (doubtfulPayers(touch, balances).length === 0) return touch.sides;
  let { leftUnits } = arrivalsOf(touch.sides, balances.afterUnits - balances.beforeUnits);
  return touch.sides.map((side) => {
    const { address: wallet, txHash: hash, units } = side;
    if (units >= 0n || leftUnits === 0n || owners.isExplained({ wallet, hash })) return side;
    const unmoved = leftUnits < -units ? leftUnits : -units;
    leftUnits -= unmoved;
    verdicts.sightings.push(sightingOf({ ...side, units: unmoved }, "NOT_LEFT"));
    return { ...side, units: units + unmoved };
  });
}

function addInflow(side: TokenSide, owners: TokenOwners, verdicts: TokenVerdicts): void {
  const { asset, address, units: amountUnits, height, blockHash, txHash, txIndex, opIndex } = side;
  const place = { asset, amountUnits, height, txHash, txIndex, opIndex };
  const customerId = owners.customerOf(address);
  if (owners.walletFrom(address) !== undefined) {
    verdicts.walletInflows.push({ ...place, wallet: address, sender: side.counterparty });
  } else if (customerId !== undefined) {
    const creditable = height > 0 && customerId !== UNASSIGNED;
    verdicts.deposits.push({ ...place, address, customerId, blockHash, creditable });
  }
}

/** One outflow for each transaction, as with coins. */
function addOutflows(
  { asset, address: wallet, height }: TokenTouch,
  sides: readonly TokenSide[],
  owners: TokenOwners,
  verdicts: TokenVerdicts,
): void {
  const byTransaction = new Map<Hash32, bigint>();
  for (const { txHash, units } of sides) {
    if (units >= 0n) continue;
    byTransaction.set(txHash, (byTransaction.get(txHash) ?? 0n) - units);
  }
  const role = owners.walletFrom(wallet) === undefined ? "deposit-address" : "hot-wallet";
  for (const [txHash, units] of byTransaction) {
    const amountUnits = atMostWord(units);
    verdicts.outflows.push({ asset, wallet, role, txHash, height, amountUnits, feeAtoken: 0n });
  }
}

function sightingOf(side: TokenSide, reason: SightingReason): NewSighting {
  const { height, blockHash, txHash, txIndex, opIndex, contract, address } = side;
  const place = { height, blockHash, txHash, txIndex, opIndex };
  return {
    ...place,
    contract,
    standard: "erc20",
    address,
    sender: side.counterparty,
    claimed: side.units,
    reason,
  };
}
