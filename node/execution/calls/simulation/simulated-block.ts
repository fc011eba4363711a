/** One block of a simulation: overrides, its calls as transactions, its header. */
import { weightsOf } from "../../../../chain/evm/compute-weights.js";
import {
  type Block,
  type BlockHeader,
  type BlockTransaction,
  hashHeader,
} from "../../../../chain/block.js";
import { intrinsicGas } from "../../../../chain/transaction-rules.js";
import { revertText } from "../../../../chain/evm/revert-reason.js";
import { type Hash32, ZERO_HASH } from "../../../../chain/hex.js";
import {
  encodeReceipt,
  type Log,
  mergeBlooms,
  receiptBehind,
  type Receipt,
} from "../../../../chain/receipt.js";
import { type SignedTransaction, withoutSignature } from "../../../../chain/transaction.js";
import { orderedTrieRoot } from "../../../state/ordered-trie.js";
import { EMPTY_ACCOUNT } from "../../../store/account-record.js";
import { Engine } from "../../interpreter/engine.js";
import { OUT_OF_COMPUTE } from "../../interpreter/halt.js";
import type { BlockContext } from "../../message.js";
import { MAX_JSON_UNIT_BYTES, type TraceBudget } from "../../tracers/tracer.js";
import type { RunResult } from "../../transaction-engine.js";
import { type ExecutionEnvironment, executeTransaction } from "../../transaction-executor.js";
import { CallError } from "../call-error.js";
import { type OverlaidState, overriddenBlock, precompilesUnder } from "../call-overrides.js";
import type { CallRequest, CallResult } from "../call-port.js";
import type { WorkerSettings } from "../call-protocol.js";
import { feesOf } from "../call-run.js";
import { stateOf } from "../call-state.js";
import { checkCall, refused, refusedBecause } from "./refusal.js";
import type { PlannedBlock } from "./block-plan.js";
import { TransferLogs } from "./transfer-logs.js";

/** JSON of a call's answer and transaction without what they carry. */
const CALL_BYTES = 1_000;

/** What geth adds where the node's cap, not the caller, has bounded a call that failed. */
const CAPPED_TEXT = " (gas limit was capped by the RPC server's global gas cap)";

/** A call of a simulated block. */
export interface SimulatedCall {
  readonly result: CallResult;
  /** Gas used at its highest, before the refund. */
  readonly maxUsedGas: bigint;
  /** In the order of execution, those of moved coins included; none where the call failed. */
  readonly logs: readonly Log[];
}

/** A block that was only simulated; its state root is not worked out and zero. */
export interface SimulatedBlock {
  readonly block: Block;
  /** One for each transaction. */
  readonly calls: readonly SimulatedCall[];
}

/** What a block is simulated with; state and budgets are shared by all blocks. */
export interface BlockEnvironment {
  readonly settings: WorkerSettings;
  readonly state: OverlaidState;
  readonly gas: GasBudget;
  readonly budget: TraceBudget;
  readonly traceTransfers: boolean;
  readonly validation: boolean;
  /** Its facts of the chain are those of the base block: coins that burn are not counted. */
  readonly context: Pick<BlockContext, "coinbase" | "gasLimit" | "blockHash" | "native">;
  readonly parentHash: Hash32;
}

/**
 * Executes a block's calls on the state, which has its changes afterwards.
 * @throws SIMULATION_REFUSED, INVALID_OVERRIDE, TRACE_TOO_LARGE
 */
export async function simulateBlock(
  { height, timestampSeconds, blockOverrides, overrides, calls }: PlannedBlock,
  environment: BlockEnvironment,
): Promise<SimulatedBlock> {
  const { state, parentHash, settings } = environment;
  const place = { ...environment.context, height, timestampSeconds, mixHash: parentHash };
  const context = overriddenBlock(place, { ...blockOverrides, timestampSeconds });
  const precompiles = precompilesUnder(overrides);
  await state.override(overrides);
  if (calls.length === 0) return sealed({ context, parentHash, executed: [] });
  const journaled = stateOf(state, context, settings);
  const { chainId, computeWeights, maxTransactionComputeNs: maxTransactionNs } = settings;
  const weights = weightsOf(computeWeights);
  const engine = new Engine({ chainId, state: journaled, weights, precompiles });
  const logs = new TransferLogs(environment);
  const run = new BlockRun(environment, {
    context,
    execution: {
      state: journaled,
      engine: () => engine,
      block: context,
      feeCollector: settings.feeCollector,
      // What a call may take is bounded by the simulation's own gas cap.
      limits: { chainId, maxTransactionGas: context.gasLimit },
      compute: { blockLeftNs: maxTransactionNs, maxTransactionNs },
      computeWeights,
      watcher: logs.watcher,
      simulation: { checksNonce: environment.validation },
    },
    logs,
  });
  for (const call of calls) await run.add(call);
  state.absorb(journaled);
  return sealed({ context, parentHash, executed: run.executed });
}

/** Gas that all calls of a simulation share. */
export class GasBudget {
  constructor(private leftGas: bigint) {}

  /** The gas, or what is left if that is less. */
  cap(gas: bigint): bigint {
    return gas < this.leftGas ? gas : this.leftGas;
  }

  /** Takes what a call has used, which `cap` has bounded. */
  use(gas: bigint): void {
    if (gas > this.leftGas) {
      const text = `RPC gas cap exhausted: need ${gas}, remaining ${this.leftGas}`;
      throw refused("GAS_CAP_EXHAUSTED", text);
    }
    this.leftGas -= gas;
  }
}

/** A call that was executed. */
interface Executed {
  readonly transaction: BlockTransaction;
  readonly receipt: Receipt;
  readonly call: SimulatedCall;
}

interface RunParts {
  readonly context: BlockContext;
  readonly execution: ExecutionEnvironment;
  readonly logs: TransferLogs;
}

/** The calls of one block, one after the other. */
class BlockRun {
  readonly executed: Executed[] = [];
  private gasUsed = 0n;

  constructor(
    private readonly environment: BlockEnvironment,
    private readonly parts: RunParts,
  ) {}

  async add(request: CallRequest): Promise<void> {
    const { gas, budget, validation } = this.environment;
    const { execution, context, logs } = this.parts;
    const { transaction, isCapped } = this.toTransaction(request);
    const { tx, from } = transaction;
    budget.take(CALL_BYTES + 2 * tx.data.length);
    checkCall(transaction, { baseFeeAtoken: context.baseFeeAtoken ?? 0n, validation });
    const outcome = await executeTransaction(transaction, execution);
    if (!outcome.included) {
      if (outcome.code === "EXECUTION_FAULT") throw outcome.cause;
      if (outcome.code === "OUT_OF_BLOCK_COMPUTE") {
        // It has the units of one transaction for itself: its bytes and its list alone weigh more.
        throw new CallError(
          "INVALID_MESSAGE",
          `${OUT_OF_COMPUTE.text}: no block can hold the call`,
        );
      }
      const { nonce } = execution.state.accountNow(from) ?? EMPTY_ACCOUNT;
      // What is locked of a balance pays for nothing.
      const sender = { nonce, balanceAtoken: execution.state.spendableNow(from) };
      throw refusedBecause(outcome.code, transaction, sender);
    }
    const executed = outcome.result;
    if (executed === undefined) throw new TypeError("a simulated call is run by the engine");
    const { gasUsed } = outcome.receipt;
    gas.use(gasUsed);
    this.gasUsed += gasUsed;
    const result = callResult(executed, gasUsed, isCapped);
    if (result.outcome !== "error") budget.take(2 * result.returnData.length);
    if (result.outcome === "revert") {
      budget.take(MAX_JSON_UNIT_BYTES * revertText(result.returnData).length);
    }
    const maxUsedGas = intrinsicGas(tx) + executed.gasUsed;
    this.executed.push({
      transaction,
      receipt: receiptBehind(this.gasUsed, outcome.receipt),
      call: { result, maxUsedGas, logs: logs.take() },
    });
  }

  /** The call as the transaction that it would be; what it leaves open is filled in. */
  private toTransaction(request: CallRequest): {
    transaction: BlockTransaction;
    isCapped: boolean;
  } {
    const { settings, gas } = this.environment;
    const { context, execution } = this.parts;
    const { from, to, valueAtoken, data, accessList, dynamicFees } = request;
    const leftGas = context.gasLimit - this.gasUsed;
    const wantedGas = request.gasLimit ?? leftGas;
    if (leftGas < wantedGas) {
      const text = `block gas limit reached: remaining: ${leftGas}, required: ${wantedGas}`;
      throw refused("BLOCK_GAS_LIMIT_REACHED", text);
    }
    const gasLimit = gas.cap(wantedGas);
    const { nonce } = execution.state.accountNow(from) ?? EMPTY_ACCOUNT;
    const tx: SignedTransaction = withoutSignature({
      type: dynamicFees !== undefined ? 2 : accessList.length > 0 ? 1 : 0,
      chainId: settings.chainId,
      nonce: request.nonce ?? nonce,
      ...feesOf(request),
      gasLimit,
      to,
      valueAtoken,
      data,
      accessList,
    });
    return { transaction: { tx, from }, isCapped: gasLimit < wantedGas };
  }
}

function callResult(result: RunResult, gasUsed: bigint, isCapped: boolean): CallResult {
  const { errorText: error, isRevert } = result;
  const returnData = result.output.slice();
  if (error === undefined) return { outcome: "success", returnData, gasUsed };
  if (isRevert) return { outcome: "revert", returnData, gasUsed };
  return { outcome: "error", error: isCapped ? error + CAPPED_TEXT : error, gasUsed };
}

/** The block around what was executed; its header is as in a real block but for roots of state. */
function sealed({
  context,
  parentHash,
  executed,
}: {
  context: BlockContext;
  parentHash: Hash32;
  executed: readonly Executed[];
}): SimulatedBlock {
  const receipts = executed.map(({ receipt }) => receipt);
  const transactions = executed.map(({ transaction }) => transaction);
  const header: BlockHeader = {
    parentHash,
    coinbase: context.coinbase,
    stateRoot: ZERO_HASH,
    transactionsRoot: orderedTrieRoot(transactions.map(({ tx }) => tx.raw)),
    receiptsRoot: orderedTrieRoot(receipts.map(encodeReceipt)),
    logsBloom: mergeBlooms(receipts.map(({ logsBloom }) => logsBloom)),
    height: context.height,
    gasLimit: context.gasLimit,
    gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n,
    timestampSeconds: context.timestampSeconds,
    moduleRoot: ZERO_HASH,
    mixHash: context.mixHash,
  };
  const block: Block = {
    header,
    hash: hashHeader(header),
    timeMs: context.timestampSeconds * 1_000,
    transactions,
    dataHash: ZERO_HASH,
  };
  return { block, calls: executed.map(({ call }) => call) };
}
