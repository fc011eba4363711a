/**
 * Pure: operations of blocks and the addresses we watch -> deposits with their natural keys, flows
 * of the hot wallets, and per address and block the sum that the chain's balances must confirm; of
 * tokens the sides of transfers, which are claims of contracts until `tokens/` has judged them.
 */
import type { Address } from "../chain/address.js";
import type { Hash32, Height } from "../chain/hex.js";
import type { Atoken } from "../chain/units.js";
import { type CustomerId, NATIVE_ASSET, UNASSIGNED } from "../ledger/journal/accounts.js";
import type { NewDeposit } from "../ledger/blocks/new-deposits.js";
import type { Outflow, WalletInflow } from "../ledger/watch/flows.js";
import type { PaidTerms } from "../ledger/requests/payment-terms.js";
import { mayHavePaid } from "../ledger/requests/possible-payments.js";
import type { TokenSide } from "./tokens/token-side.js";

/** One operation, as far as matching needs it. */
export interface MatchOperation {
  readonly index: number;
  readonly type: string;
  readonly status: "SUCCESS" | "FAILURE";
  readonly address: Address;
  /** False for tokens, and for coins that the address does not hold itself. */
  readonly isNative: boolean;
  /** Contract of a token; undefined for coins, and for what is neither. */
  readonly contract?: Address | undefined;
  /** Signed. */
  readonly amountAtoken: Atoken;
  readonly relatedIndexes: readonly number[];
}

/** One transaction of a block, or its block-level operations. */
export interface MatchTransaction {
  readonly hash: Hash32;
  readonly index: number;
  readonly operations: readonly MatchOperation[];
}

/** One block. */
export interface MatchBlock {
  readonly height: Height;
  readonly hash: Hash32;
  readonly transactions: readonly MatchTransaction[];
}

/** Which addresses are ours. */
export interface Watched {
  /** The customer of a deposit address; undefined for any other address. */
  customerOf(address: Address): CustomerId | undefined;
  /** The asset of a token's contract; undefined for contracts that nobody listed. */
  assetOf(contract: Address): string | undefined;
  /**
   * First block whose operations of a hot wallet are booked as they come, retired wallets included;
   * undefined for an address that is none.
   */
  walletFrom(address: Address): Height | undefined;
}

/** What a block did to one watched address, to be held against its balances. */
export interface Touch {
  readonly address: Address;
  readonly height: Height;
  /** Sum of the address's effective operations in the block. */
  readonly deltaAtoken: Atoken;
}

/** Everything that blocks mean for us, in chain order. */
export interface MatchResult {
  readonly deposits: readonly NewDeposit[];
  readonly walletInflows: readonly WalletInflow[];
  readonly outflows: readonly Outflow[];
  readonly touches: readonly Touch[];
  readonly tokenSides: readonly TokenSide[];
}

/**
 * Ways in which somebody pays an address. Coins that arrive otherwise (minted, genesis, rewards, a
 * type that this version does not know) were not sent to the customer and go to suspense.
 */
const PAYMENT_TYPES: ReadonlySet<string> = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Matches consecutive blocks against the watched addresses. */
export function matchBlocks(blocks: readonly MatchBlock[], watched: Watched): MatchResult {
  const result = {
    deposits: [] as NewDeposit[],
    walletInflows: [] as WalletInflow[],
    outflows: [] as Outflow[],
    touches: [] as Touch[],
    tokenSides: [] as TokenSide[],
  };
  for (const block of blocks) {
    const deltas = new Map<Address, bigint>();
    for (const transaction of block.transactions) {
      const sides = new OtherSides(transaction);
      matchTransaction({ block, transaction, watched, result, deltas, sides });
    }
    for (const [address, deltaAtoken] of deltas) {
      result.touches.push({ address, height: block.height, deltaAtoken });
    }
  }
  return result;
}

/**
 * What a transaction of these blocks may have paid by its operations: not what it moved of tokens that only
 * logs tell of.
 */
export function paidIn(blocks: readonly MatchBlock[], hash: Hash32): readonly PaidTerms[] {
  const found = blocks.flatMap(({ transactions }) => transactions.filter((tx) => tx.hash === hash));
  return mayHavePaid(
    found.flatMap(({ operations }) =>
      operations.flatMap((operation) => {
        const { address: destination, isNative, contract, amountAtoken, type } = operation;
        const isMovement = isEffective(operation) && amountAtoken > 0n && type !== "FEE";
        if (!isMovement || (!isNative && contract === undefined)) return [];
        return [{ destination, contract, amountUnits: amountAtoken }];
      }),
    ),
  );
}

interface Matching {
  readonly block: MatchBlock;
  readonly transaction: MatchTransaction;
  readonly watched: Watched;
  readonly result: {
    readonly deposits: NewDeposit[];
    readonly walletInflows: WalletInflow[];
    readonly outflows: Outflow[];
    readonly tokenSides: TokenSide[];
  };
  readonly deltas: Map<Address, bigint>;
  /** Other sides of the operations of `transaction`. */
  readonly sides: OtherSides;
}

function matchTransaction(matching: Matching): void {
  const { transaction, watched, deltas, sides } = matching;
  const spent = new Map<Address, { amountUnits: bigint; feeAtoken: Atoken }>();
  for (const operation of transaction.operations) {
    if (!isEffective(operation)) continue;
    const { address, amountAtoken } = operation;
    const customerId = watched.customerOf(address);
    if (customerId === undefined && !isWatchedWallet(matching, address)) continue;
    const deltaAtoken = operation.isNative ? amountAtoken : 0n;
    // Other currencies leave the balance alone, and the chain is asked whether that is true.
    deltas.set(address, (deltas.get(address) ?? 0n) + deltaAtoken);
    if (sides.isSelfPaid(operation)) continue;
    if (!operation.isNative) {
      addTokenSide(matching, operation);
      continue;
    }
    if (amountAtoken > 0n) {
      addInflow(matching, operation, customerId);
    } else {
      const sum = spent.get(address) ?? { amountUnits: 0n, feeAtoken: 0n };
      if (operation.type === "FEE") sum.feeAtoken -= amountAtoken;
      else sum.amountUnits -= amountAtoken;
      spent.set(address, sum);
    }
  }
  for (const [wallet, sum] of spent) {
    matching.result.outflows.push({
      asset: NATIVE_ASSET,
      wallet,
      role: watched.walletFrom(wallet) === undefined ? "deposit-address" : "hot-wallet",
      txHash: transaction.hash,
      height: matching.block.height,
      ...sum,
    });
  }
}

function addTokenSide(matching: Matching, operation: MatchOperation): void {
  const { block, transaction, watched, result, sides } = matching;
  const { contract, address, amountAtoken: units, index: opIndex } = operation;
  const asset = contract === undefined ? undefined : watched.assetOf(contract);
  if (contract === undefined || asset === undefined) return;
  result.tokenSides.push({
    asset,
    contract,
    address,
    units,
    counterparty: sides.of(operation)[0]?.address,
    height: block.height,
    blockHash: block.hash,
    txHash: transaction.hash,
    txIndex: transaction.index,
    opIndex,
  });
}

function addInflow(
  matching: Matching,
  operation: MatchOperation,
  customerId: CustomerId | undefined,
): void {
  const { block, transaction, watched, result, sides } = matching;
  const place = {
    asset: NATIVE_ASSET,
    amountUnits: operation.amountAtoken,
    height: block.height,
    txHash: transaction.hash,
    txIndex: transaction.index,
    opIndex: operation.index,
  };
  if (watched.walletFrom(operation.address) !== undefined) {
    const sender = sides.of(operation)[0]?.address;
    result.walletInflows.push({ wallet: operation.address, ...place, sender });
  } else if (customerId !== undefined) {
    result.deposits.push({
      ...place,
      address: operation.address,
      customerId,
      blockHash: block.hash,
      // What genesis allots was there before anybody could be told the address.
      creditable:
        block.height > 0 && PAYMENT_TYPES.has(operation.type) && customerId !== UNASSIGNED,
    });
  }
}

/** What lay in a wallet before its first block is booked as one balance. */
function isWatchedWallet({ block, watched }: Matching, address: Address): boolean {
  const from = watched.walletFrom(address);
  return from !== undefined && block.height >= from;
}

function isEffective(operation: MatchOperation): boolean {
  return operation.status === "SUCCESS" && operation.amountAtoken !== 0n;
}

/**
 * The other sides of a transaction's operations. Found once for all of them, when the first one is asked for:
 * anybody can have one transaction pay an address of ours thousands of times.
 */
export class OtherSides {
  readonly #operations: readonly MatchOperation[];
  #sides: ReadonlyMap<number, ReadonlySet<number>> | undefined;

  constructor({ operations }: Pick<MatchTransaction, "operations">) {
    this.#operations = operations;
  }

  /** In the order of the transaction; either may say that they belong together. */
  of({ index }: MatchOperation): readonly MatchOperation[] {
    this.#sides ??= this.#find();
    const places = [...(this.#sides.get(index) ?? [])].toSorted((left, right) => left - right);
    return places.flatMap((place) => this.#operations[place] ?? []);
  }

  /** True for either side of a pair that takes from and gives to the same address: nothing moved. */
  isSelfPaid(operation: MatchOperation): boolean {
    return this.of(operation).some(
      (other) =>
        other.address === operation.address &&
        other.amountAtoken === -operation.amountAtoken &&
        other.isNative === operation.isNative &&
        other.contract === operation.contract &&
        isEffective(other),
    );
  }

  #find(): ReadonlyMap<number, ReadonlySet<number>> {
    const sides = new Map<number, Set<number>>();
    const add = (one: number, other: number) => {
      const known = sides.get(one);
      if (known === undefined) sides.set(one, new Set([other]));
      else known.add(other);
    };
    for (const { index, relatedIndexes } of this.#operations) {
      for (const related of relatedIndexes) {
        add(index, related);
        add(related, index);
      }
    }
    return sides;
  }
}
