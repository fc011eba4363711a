/**
 * Why a deposit is what it is: the operation on the chain, the block it stands in, the balance that
 * it changed, and the entries in the books. What the chain says is asked anew, not remembered.
 */
import type { Address } from "../../chain/address.js";
import { AppError } from "../../chain/errors.js";
import { atMostWord, type Hash32 } from "../../chain/hex.js";
import { NATIVE_ASSET } from "../../ledger/journal/accounts.js";
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
import { NodeFault } from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { TransferLog } from "../../rpc-client/tokens/transfer-logs.js";
import { limitedSignal } from "../../runtime/process/task.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { BlockSource } from "../reading/block-source.js";
import { OtherSides } from "../deposit-match.js";
import { ofOtherCode } from "../tokens/past-codes.js";
import { arrivalsOf } from "../tokens/token-verdict.js";
import { LOG_INDEX_BASE, opIndexOfLog } from "../tokens/token-side.js";
import { type Difference, difference, EvidenceUntold, whyUntold } from "./evidence-differences.js";

/** Where evidence comes from. */
export interface EvidenceParts {
  readonly database: SqlDatabase;
  readonly node: Pick<
    EvmClient,
    "getBlockHeader" | "getBalances" | "tokenBalances" | "tokenCodes" | "transferLogs"
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
  /** Where they differ, or why they cannot be compared; empty where both say the same. */
  readonly differences: readonly Difference[];
}

/**
 * Most time for what the chain says, all questions together: what the books say is told before the console
 * gives up (`api.timeout-ms`, 10 s).
 */
export const CHAIN_BUDGET_MS = 8_000;

/** Collects both sides. Throws SqlError; a node that does not answer is part of the evidence. */
export async function collectEvidence(
  parts: EvidenceParts,
  deposit: StoredDeposit,
  options: { readonly signal: AbortSignal; readonly budgetMs?: number },
): Promise<DepositEvidence> {
  const { database } = parts;
  const gas = await keysOfGas(database, deposit.id);
  const entries = await entriesOfDeposit(database, deposit.id, gas);
  const budgetMs = options.budgetMs ?? CHAIN_BUDGET_MS;
  const limited = limitedSignal([options.signal], budgetMs);
  try {
    const { chain, differences } = await askChain(parts, deposit, { signal: limited });
    return { entries, chain, chainFault: undefined, differences };
  } catch (thrown) {
    options.signal.throwIfAborted();
    const late = { retriable: true, cause: thrown };
    const error = limited.aborted
      ? new NodeFault("NODE_TIMEOUT", `no answer within ${budgetMs} ms`, late)
      : thrown;
    if (!(error instanceof AppError)) throw error;
    const { code, message } = error;
    const chainFault = { code, message };
    return { entries, chain: undefined, chainFault, differences: [whyUntold(error)] };
  }
}

async function askChain(
  parts: EvidenceParts,
  deposit: StoredDeposit,
  options: { readonly signal: AbortSignal },
): Promise<{ readonly chain: ChainEvidence; readonly differences: readonly Difference[] }> {
  const { database, node, source } = parts;
  const { height, asset, address: wallet, txHash: payer } = deposit;
  const contract = parts.contractOf(asset);
  if (contract === undefined && asset !== NATIVE_ASSET) {
    throw new EvidenceUntold("NOT_TOLD", `this process does not follow ${asset}`);
  }
  const header = await node.getBlockHeader(height, options);
  if (header === undefined) {
    throw new EvidenceUntold("BEHIND", `the node has no block ${height}`);
  }
  const [own, balances, surplusUnits, unmoved, explained, isOther] = await Promise.all([
    readOwn(source, deposit, options),
    readBalances(node, deposit, { contract, header, ...options }),
    surplusBeside(database, deposit),
    unmovedBeside(database, deposit),
    explainedTakings(database, [{ wallet, hash: payer }]),
    contract !== undefined && ranOtherCode(parts, { asset, contract, at: header.hash }, options),
  ]);
  const { operation, moves } = await toldOf(node, own.transactions, deposit, {
    contract,
    ...options,
  });
  const [balanceBeforeUnits, balanceAfterUnits] = balances;
  const changeUnits = balanceAfterUnits - balanceBeforeUnits;
  const operationsUnits = moves.reduce((sum, { units }) => sum + units, 0n);
  const told = { changeUnits, operationsUnits, operation, moves };
  const isExplained = explained.size > 0;
  const contradictions = [
    ...differencesOfBlocks(deposit, header.hash, own.hash),
    ...(contract === undefined
      ? differencesOfCoins(deposit, told)
      : differencesOfUnits(deposit, told, { unmoved, surplusUnits, isExplained })),
  ];
  const { hash: blockHash, parentHash, timestampSeconds } = header;
  const block = { blockHash, parentHash, timestampSeconds };
  const agrees = contradictions.length === 0;
  return {
    chain: { ...block, operation, balanceBeforeUnits, balanceAfterUnits, operationsUnits, agrees },
    differences: isOther ? [...contradictions, ofCode(deposit)] : contradictions,
  };
}

/** Whether the contract ran code after a block that nobody has accepted. */
async function ranOtherCode(
  parts: Pick<EvidenceParts, "database" | "node">,
  { asset, contract, at }: { readonly asset: string; readonly contract: Address; at: Hash32 },
  options: { readonly signal: AbortSignal },
): Promise<boolean> {
  return (await ofOtherCode(parts, [{ symbol: asset, contract }], { at, ...options })).size > 0;
}

function ofCode({ asset, height }: StoredDeposit): Difference {
  const message = `After block ${height} the contract of ${asset} ran code that nobody has accepted.`;
  return difference("CODE_NOT_ACCEPTED", message);
}

/** Whose block the deposit stands in. */
function differencesOfBlocks(
  { height, blockHash: bookedHash, status }: StoredDeposit,
  nodeHash: Hash32,
  ownHash: Hash32,
): Difference[] {
  const found: Difference[] = [];
  if (nodeHash !== bookedHash) {
    const message = `The books have block ${height} as ${bookedHash}, and the node as ${nodeHash}.`;
    found.push(difference(status === "reversed" ? "REVERSED" : "BLOCK_REPLACED", message));
  }
  if (ownHash !== nodeHash) {
    const message = `The node has block ${height} as ${nodeHash}, and the Data API as ${ownHash}.`;
    found.push(difference("SOURCES_DISAGREE", message));
  }
  return found;
}

interface Told extends ToldOperations {
  readonly changeUnits: bigint;
  readonly operationsUnits: bigint;
}

/** What of a deposit's own movement is otherwise: none of it is there, or it claims other units. */
function ofMovement(
  { asset, amountUnits, txHash, height }: StoredDeposit,
  { operation, moves }: Told,
  isClaimed: (units: bigint) => boolean,
): Difference[] {
  const own = moves.filter(({ isDeposit }) => isDeposit);
  if (own.some(({ units }) => isClaimed(units))) return [];
  const [first] = own;
  if (first !== undefined) {
    const message = `The books have ${amountUnits} units of ${asset}, and its movement ${first.units}.`;
    return [difference("AMOUNT_DIFFERS", message)];
  }
  if (operation !== undefined && operation.status !== "SUCCESS") {
    const message = `Its operation in transaction ${txHash} has the status ${operation.status}.`;
    return [difference("OPERATION_FAILED", message)];
  }
  const message = `Block ${height} has no movement of ${asset} to the address by transaction ${txHash}.`;
  return [difference("OPERATION_GONE", message)];
}

function differencesOfCoins(deposit: StoredDeposit, told: Told): Difference[] {
  const { changeUnits, operationsUnits } = told;
  const found = ofMovement(deposit, told, (units) => units === deposit.amountUnits);
  if (changeUnits === operationsUnits) return found;
  const message =
    `The address's balance changed by ${changeUnits} atoken in the block, and its operations there come ` +
    `to ${operationsUnits}.`;
  return [...found, difference("BALANCE_DIFFERS", message)];
}

/**
 * Of a token only what arrived was booked, which may be less than it claims; and what came beside that.
 * @param booked.isExplained of the deposit's own transaction: what another one took is not held against it
 */
function differencesOfUnits(
  deposit: StoredDeposit,
  told: Told,
  booked: {
    readonly unmoved: ReadonlyMap<Hash32, bigint>;
    readonly surplusUnits: bigint;
    readonly isExplained: boolean;
  },
): Difference[] {
  const { amountUnits, asset } = deposit;
  const moved = ofMovement(deposit, told, (units) => units >= amountUnits);
  if (moved.length > 0) return moved;
  const { changeUnits, operationsUnits } = told;
  const { isExplained, surplusUnits, unmoved } = booked;
  const moves = withoutUnmoved(told.moves, unmoved);
  const { arrivedUnits, leftUnits } = arrivalsOf(moves, changeUnits, () => isExplained);
  const found: Difference[] = [];
  if (!moves.some(({ isDeposit }, at) => isDeposit && arrivedUnits[at] === amountUnits)) {
    const message =
      `The balance that the contract of ${asset} tells of the address changed by ${changeUnits} units in ` +
      `the block, and its logs claim ${operationsUnits}: the ${amountUnits} that are booked do not follow.`;
    found.push(difference("TOKEN_CONTRADICTED", message));
  }
  const cameUnits = atMostWord(leftUnits > 0n ? leftUnits : 0n);
  if (cameUnits !== surplusUnits) {
    const message =
      `Beyond what ${asset} claims ${cameUnits} units came to the address in the block, and ` +
      `${surplusUnits} are booked so.`;
    found.push(difference("SURPLUS_DIFFERS", message));
  }
  return found;
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

/** Around the very block that the node has, whichever node behind a balancer answers. */
async function readBalances(
  node: EvidenceParts["node"],
  { address, height, asset }: StoredDeposit,
  {
    contract: token,
    header: { hash, parentHash },
    ...options
  }: {
    readonly contract: Address | undefined;
    readonly header: { readonly hash: Hash32; readonly parentHash: Hash32 };
    readonly signal: AbortSignal;
  },
): Promise<readonly [bigint, bigint]> {
  const states = height === 0 ? [hash] : [parentHash, hash];
  const balances =
    token === undefined
      ? await node.getBalances(
          states.map((at) => ({ address, at })),
          options,
        )
      : await node.tokenBalances(
          states.map((at) => ({ token, account: address, at })),
          options,
        );
  const after = balances.at(-1);
  if (after === undefined) {
    const message = `the contract of ${asset} tells no balance of ${address} after block ${height}`;
    throw new EvidenceUntold("TOKEN_SILENT", message);
  }
  // Before its contract was there nobody had any of a token.
  return [(height === 0 ? undefined : balances[0]) ?? 0n, after];
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
    throw new EvidenceUntold("BEHIND", reason);
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
