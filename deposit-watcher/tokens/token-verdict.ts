/**
 * Pure: what contracts claim against what the balances of our addresses did. Only what arrived is a
 * deposit, and only what left is an outflow that nobody asked for, both as one transaction leaves them; what
 * a contract claimed beyond it is recorded, and what came unsaid goes to suspense.
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

/**
 * What logs and balances of tokens agree upon, and is to be booked; and what arrived without being
 * credited.
 */
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
  /** Whether something explains what a transaction took of an address; asked of `payersInQuestion` alone. */
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

/** What claims of moves come to, held against what the balance changed by. */
export interface Arrivals {
  /** Of each move what arrived and was not taken again, in their order; nothing of one that takes. */
  readonly arrivedUnits: readonly bigint[];
  /** What each transaction that takes took, beyond what it brought itself where nothing explains it. */
  readonly takenUnits: ReadonlyMap<Hash32, bigint>;
  /** What the balance rose by beyond all claims; negative where more is gone than they say. */
  readonly leftUnits: bigint;
}

/** One move of a token at one of our addresses, as it was claimed. */
interface Move {
  /** Signed. */
  readonly units: bigint;
  readonly txHash: Hash32;
}

/**
 * Gives what came to those who claim it, one after the other. Who takes is taken at its word: what it
 * took beyond it, or not, shows as too little or too much that arrived, or in the reconciliation. What is
 * only said to have left shows in `leftUnits`, and `withoutUnmoved` takes it out first. Of what a transaction
 * brought, what it took again itself did not come: a fee of who receives is a second transfer. Only what
 * arrived is held against it, so that no claim hides what is gone.
 * @param moves all of one token at one address in one block, in the order of the block
 * @param changeUnits balance after the block less the one before it
 * @param isExplained whether a payment or a sweep of ours is the transaction: it is booked by its logs
 */
export function arrivalsOf(
  moves: readonly Move[],
  changeUnits: bigint,
  isExplained: (hash: Hash32) => boolean,
): Arrivals {
  const takenUnits = takingsOf(moves);
  let leftUnits = [...takenUnits.values()].reduce((sum, units) => sum + units, changeUnits);
  const arrivedUnits = moves.map(({ units }) => {
    if (units <= 0n || leftUnits <= 0n) return 0n;
    const arrived = leftUnits < units ? leftUnits : units;
    leftUnits -= arrived;
    return arrived;
  });
  for (const [index, { txHash }] of [...moves.entries()].toReversed()) {
    const taken = takenUnits.get(txHash) ?? 0n;
    const arrived = arrivedUnits[index] ?? 0n;
    const again = taken < arrived ? taken : arrived;
    if (again === 0n || isExplained(txHash)) continue;
    arrivedUnits[index] = arrived - again;
    takenUnits.set(txHash, taken - again);
  }
  return { arrivedUnits, takenUnits, leftUnits };
}

/** What each transaction says that it took. */
function takingsOf(moves: readonly Move[]): Map<Hash32, bigint> {
  const takenUnits = new Map<Hash32, bigint>();
  for (const { txHash, units } of moves) {
    if (units < 0n) takenUnits.set(txHash, (takenUnits.get(txHash) ?? 0n) - units);
  }
  return takenUnits;
}

/** By how much less a balance fell, or more rose, than is claimed; not above zero where it did not. */
function unsaidUnits(moves: readonly Move[], changeUnits: bigint): bigint {
  return moves.reduce((sum, { units }) => sum - units, changeUnits);
}

/**
 * Transactions of which it has to be known whether something explains them: those that are said to have
 * taken more of one of our addresses than its balance fell by, counting what came in, and those that took
 * where they also brought. None where the contract does not tell the balance.
 */
export function payersInQuestion(
  { sides, address: wallet }: TokenTouch,
  { beforeUnits, afterUnits }: TokenBalances,
): readonly Payer[] {
  if (beforeUnits === undefined || afterUnits === undefined) return [];
  const isDoubtful = unsaidUnits(sides, afterUnits - beforeUnits) > 0n;
  const bringing = new Set(sides.flatMap(({ units, txHash }) => (units > 0n ? [txHash] : [])));
  return [...takingsOf(sides).keys()]
    .filter((hash) => isDoubtful || bringing.has(hash))
    .map((hash) => ({ wallet, hash }));
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
    addOutflows(touch, takingsOf(touch.sides), owners, verdicts);
    for (const side of incoming) verdicts.sightings.push(sightingOf(side, "UNREADABLE"));
    return;
  }
  const changeUnits = afterUnits - beforeUnits;
  const isExplained = (hash: Hash32) => owners.isExplained({ wallet: touch.address, hash });
  const sides = withoutUnmoved(touch, { changeUnits, isExplained }, verdicts);
  const arrivals = arrivalsOf(sides, changeUnits, isExplained);
  const { takenUnits, leftUnits } = arrivals;
  addOutflows(touch, takenUnits, owners, verdicts);
  for (const [index, side] of sides.entries()) {
    const arrivedUnits = arrivals.arrivedUnits[index] ?? 0n;
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
  told: { readonly changeUnits: bigint; readonly isExplained: (hash: Hash32) => boolean },
  verdicts: TokenVerdicts,
): readonly TokenSide[] {
  let openUnits = unsaidUnits(touch.sides, told.changeUnits);
  return touch.sides.map((side) => {
    const { txHash, units } = side;
    if (units >= 0n || openUnits <= 0n || told.isExplained(txHash)) return side;
    const unmoved = openUnits < -units ? openUnits : -units;
    openUnits -= unmoved;
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
  takenUnits: ReadonlyMap<Hash32, bigint>,
  owners: TokenOwners,
  verdicts: TokenVerdicts,
): void {
  const role = owners.walletFrom(wallet) === undefined ? "deposit-address" : "hot-wallet";
  for (const [txHash, units] of takenUnits) {
    if (units === 0n) continue;
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
