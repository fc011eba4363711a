/**
 * Why a deposit is what it is: the operation on the chain, the block it stands in, the balance that
 * it changed, and the entries in the books. What the chain says is asked anew, not remembered.
 */
import type { Address } from "../../chain/address.js";
import { AppError, present } from "../../chain/errors.js";
import { atMostWord, type Hash32 } from "../../chain/hex.js";
import { explainedTakings } from "../../ledger/blocks/wallet-flows.js";
import {
  entriesOfDeposit,
  type PostedEntry,
  surplusBeside,
  unmovedBeside,
} from "../../ledger/deposits/deposit-evidence.js";
import type { StoredDeposit } from "../../ledger/deposits/deposit-queries.js";
import { keysOfGas } from "../../ledger/treasury/moves.js";
import type { DataOperation, DataTransaction } from "../../rpc-client/data-api/data-block.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { TransferLog } from "../../rpc-client/tokens/transfer-logs.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { BlockSource } from "../reading/block-source.js";
import { OtherSides } from "../deposit-match.js";
import { DepositError } from "../errors.js";
import { arrivalsOf } from "../tokens/token-verdict.js";
import { LOG_INDEX_BASE, opIndexOfLog } from "../tokens/token-side.js";

/** Where evidence comes from. */
export interface EvidenceParts {
  readonly database: SqlDatabase;
  readonly node: Pick<
    EvmClient,
    "getBlockHeader" | "getBalances" | "tokenBalances" | "transferLogs"
  >;
  readonly source: BlockSource;
  /** Contract of a token; undefined for the native coin. */
  readonly contractOf: (asset: string) => Address | undefined;
}

/** What raised the balance; of a token that the Data API leaves out, its log. */
export type DepositOperation = Pick<
  DataOperation,
  "type" | "status" | "address" | "amountAtoken" | "relatedIndexes"
>;

/** What the chain says now about a deposit. */
export interface ChainEvidence {
  /** The block of that height as the node has it; its hash must be the booked one. */
  readonly blockHash: string;
  readonly parentHash: string;
  readonly timestampSeconds: number;
  /** Undefined where neither the Data API nor a log has it (any more). */
  readonly operation: DepositOperation | undefined;
  /** Of the address, before and after the block, and what its operations there come to. */
  readonly balanceBeforeUnits: bigint;
  readonly balanceAfterUnits: bigint;
  readonly operationsUnits: bigint;
  /** True when hash, operation and balances all say what the books say. */
  readonly agrees: boolean;
}

/** Books and chain side by side; the chain's part may be missing, and says why. */
export interface DepositEvidence {
  readonly entries: readonly PostedEntry[];
  readonly chain: ChainEvidence | undefined;
  readonly chainFault: { readonly code: string; readonly message: string } | undefined;
}

/** Collects both sides. Throws SqlError; a node that does not answer is part of the evidence. */
export async function collectEvidence(
  parts: EvidenceParts,
  deposit: StoredDeposit,
  options: { readonly signal: AbortSignal },
): Promise<DepositEvidence> {
  const { database } = parts;
  const gas = await keysOfGas(database, deposit.id);
  const entries = await entriesOfDeposit(database, deposit.id, gas);
  try {
    const chain = await askChain(parts, deposit, options);
    return { entries, chain, chainFault: undefined };
  } catch (error) {
    options.signal.throwIfAborted();
    if (!(error instanceof AppError)) throw error;
    const { code, message } = error;
    return { entries, chain: undefined, chainFault: { code, message } };
  }
}

async function askChain(
  parts: EvidenceParts,
  deposit: StoredDeposit,
  options: { readonly signal: AbortSignal },
): Promise<ChainEvidence> {
  const { node, source } = parts;
  const { height } = deposit;
  const contract = parts.contractOf(deposit.asset);
  const { database } = parts;
  const { address: wallet, txHash: payer } = deposit;
  const [header, own, balances, surplusUnits, unmoved, explained] = await Promise.all([
    node.getBlockHeader(height, options),
    readOwn(source, deposit, options),
    readBalances(node, deposit, { contract, ...options }),
    surplusBeside(database, deposit),
    unmovedBeside(database, deposit),
    explainedTakings(database, [{ wallet, hash: payer }]),
  ]);
  const { operation, moves } = await toldOf(node, own.transactions, deposit, {
    contract,
    ...options,
  });
  const { hash, parentHash, timestampSeconds } = present(header, "the deposit's block");
  const [balanceBeforeUnits, balanceAfterUnits] = balances;
  const changeUnits = balanceAfterUnits - balanceBeforeUnits;
  const sumUnits = moves.reduce((sum, { units }) => sum + units, 0n);
  return {
    blockHash: hash,
    parentHash,
    timestampSeconds,
    operation,
    balanceBeforeUnits,
    balanceAfterUnits,
    operationsUnits: sumUnits,
    agrees:
      hash === deposit.blockHash &&
      own.hash === hash &&
      (contract === undefined
        ? changeUnits === sumUnits &&
          moves.some(({ units, isDeposit }) => isDeposit && units === deposit.amountUnits)
        : areArrivals(withoutUnmoved(moves, unmoved), changeUnits, {
            deposit,
            surplusUnits,
            isExplained: explained.size > 0,
          })),
  };
}

/** What a token said to have left, and did not, is recorded: it is no part of what its transactions took. */
function withoutUnmoved(
  moves: readonly Move[],
  unmoved: ReadonlyMap<Hash32, bigint>,
): readonly Move[] {
  const open = new Map(unmoved);
  return moves.map((move) => {
    const openUnits = open.get(move.txHash) ?? 0n;
    if (move.units >= 0n || openUnits === 0n) return move;
    const units = openUnits < -move.units ? openUnits : -move.units;
    open.set(move.txHash, openUnits - units);
    return { ...move, units: move.units + units };
  });
}

/**
 * Of a token only what arrived was booked, which may be less than it claims; and what came beside that.
 * @param booked.isExplained of the deposit's own transaction: what another one took is not held against it
 */
function areArrivals(
  moves: readonly Move[],
  changeUnits: bigint,
  booked: {
    readonly deposit: Pick<StoredDeposit, "amountUnits">;
    readonly surplusUnits: bigint;
    readonly isExplained: boolean;
  },
): boolean {
  const { arrivedUnits, leftUnits } = arrivalsOf(moves, changeUnits, () => booked.isExplained);
  return (
    moves.some(
      ({ isDeposit }, at) => isDeposit && arrivedUnits[at] === booked.deposit.amountUnits,
    ) && atMostWord(leftUnits > 0n ? leftUnits : 0n) === booked.surplusUnits
  );
}

async function readBalances(
  node: EvidenceParts["node"],
  { address, height }: StoredDeposit,
  options: { readonly contract: Address | undefined; readonly signal: AbortSignal },
): Promise<readonly [bigint, bigint]> {
  const heights = [Math.max(0, height - 1), height];
  const { contract: token } = options;
  const [before, after] =
    token === undefined
      ? await node.getBalances(
          heights.map((at) => ({ address, at })),
          options,
        )
      : await node.tokenBalances(
          heights.map((at) => ({ token, account: address, at })),
          options,
        );
  const hasNoBefore = height === 0 || token !== undefined;
  return [
    hasNoBefore && (height === 0 || before === undefined) ? 0n : present(before, "balance before"),
    present(after, "balance after"),
  ];
}

interface ToldOperations {
  readonly operation: DepositOperation | undefined;
  /** All that moved the asset at the address in this block, in the block's order. */
  readonly moves: readonly Move[];
}

interface Move {
  /** Signed, as it was claimed. */
  readonly units: bigint;
  readonly txHash: Hash32;
  /** True for the one that the deposit was booked by; for each that may be it where that is not known. */
  readonly isDeposit: boolean;
}

/** The deposit's block as the Data API has it, with the transactions that name its address. */
async function readOwn(
  source: BlockSource,
  { address, height }: StoredDeposit,
  options: { readonly signal: AbortSignal },
): Promise<{ readonly hash: Hash32; readonly transactions: readonly DataTransaction[] }> {
  const block = await source.block(height, options);
  if (block === undefined) {
    // It was booked from there: who has fallen behind since contradicts nothing.
    const reason = `the Data API does not have block ${height} at the moment`;
    throw new DepositError("NOT_READY", reason, { details: { height }, retriable: true });
  }
  const { hash } = block;
  return { hash, transactions: await block.transactions((one) => one === address, options) };
}

/**
 * By the operations of the Data API, where it has the deposit's. Of a token it may have them no more, or
 * under other indexes: its list of tokens was changed, or the token is left out. Then the node's logs tell.
 */
async function toldOf(
  node: EvidenceParts["node"],
  transactions: readonly DataTransaction[],
  deposit: StoredDeposit,
  options: { readonly contract: Address | undefined; readonly signal: AbortSignal },
): Promise<ToldOperations> {
  const { contract, signal } = options;
  const told = operationsOf(transactions, deposit, contract);
  if (contract === undefined || told.moves.some(({ isDeposit }) => isDeposit)) return told;
  return operationsOfLogs(node, deposit, { contract, signal });
}

/** What failed moved nothing, and what moved another asset is none of this deposit. */
function operationsOf(
  transactions: readonly DataTransaction[],
  { address, txHash, txIndex, opIndex }: StoredDeposit,
  contract: Address | undefined,
): ToldOperations {
  const transaction = transactions.find(({ hash, index }) => {
    return index === txIndex && hash === txHash;
  });
  const moves = transactions.flatMap((each) => {
    const sides = new OtherSides(each);
    return each.operations
      .filter((one) => one.address === address && one.status === "SUCCESS")
      .filter((one) => (contract === undefined ? one.isNative : one.contract === contract))
      .filter((one) => !sides.isSelfPaid(one))
      .map(({ index, amountAtoken: units }) => {
        const isDeposit = each === transaction && index === opIndex;
        return { units, txHash: each.hash, isDeposit };
      });
  });
  return { operation: transaction?.operations.find(({ index }) => index === opIndex), moves };
}

/** Of one that was booked by an operation, each transfer of its transaction to the address may be it. */
async function operationsOfLogs(
  node: EvidenceParts["node"],
  { address, height, txHash, opIndex }: StoredDeposit,
  { contract, signal }: { readonly contract: Address; readonly signal: AbortSignal },
): Promise<ToldOperations> {
  const range = { from: height, to: height };
  const logs = await node.transferLogs(range, { signal, contracts: [contract], account: address });
  const isOfLog = opIndex >= LOG_INDEX_BASE;
  const isDeposit = (log: TransferLog) =>
    log.to === address && (isOfLog ? opIndexOfLog(log) === opIndex : log.txHash === txHash);
  const own = logs.find(isDeposit);
  return {
    operation: own && {
      type: "ERC20_TRANSFER",
      status: "SUCCESS",
      address,
      amountAtoken: own.value ?? 0n,
      relatedIndexes: [],
    },
    moves: logs.flatMap((log) => {
      const { to, from, txHash: hash, value = 0n } = log;
      if (to === from) return [];
      const units = to === address ? value : -value;
      return [{ units, txHash: hash, isDeposit: isDeposit(log) }];
    }),
  };
}
