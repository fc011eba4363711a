/**
 * One Cosmos transaction over the state: ante rules, fee, sequence, then its messages one after
 * the other. When one fails all of them are undone; fee and sequence stay. Synchronous.
 */
import { leastComputeNs } from "../transaction-executor.js";
import type { Address } from "../../../chain/address.js";
import {
  type BalanceChange,
  type BalanceReason,
  changeError,
} from "../../../chain/balance-change.js";
import {
  accountText,
  event,
  feeBurnEvents,
  feeOf,
  moneyEvents,
  withLast,
} from "../../../chain/abci-event.js";
import type { AbciEvent } from "../../../chain/consensus/abci-types.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import {
  anteGas,
  balanceFault,
  coinsText,
  memoFault,
  outOfGas,
  sequenceFault,
  simulatedAnteGas,
  staticCosmosFault,
  timeoutFault,
  timestampFault,
} from "../../../chain/cosmos/ante.js";
import type { CosmosBlockTransaction, CosmosResult } from "../../../chain/cosmos/cosmos-result.js";
import { SDK_CODE, type SdkFault, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import type { WeightsVersion } from "../../../chain/evm/compute-weights.js";
import { EMPTY_CODE_HASH, MAX_WORD } from "../../../chain/hex.js";
import type { Atoken } from "../../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { isBlockedAccount } from "../../modules/blocked-accounts.js";
import { type MessageContext, moduleWords } from "../../modules/message-context.js";
import { MessageFailure } from "../../modules/module-context.js";
import { handlerOf, routingFault } from "../../modules/message-router.js";
import { moveBalances } from "../../modules/move-coins.js";
import { appVersion } from "../../modules/upgrade/plan.js";
import type { JournaledState, WordListener } from "../../state/journaled-state.js";
import { EMPTY_ACCOUNT } from "../../store/account-record.js";
import { WORD_READ_NS, WORD_WRITE_NS } from "../native/native-gas.js";

/**
 * Compute units of a unit of gas: a block's second is shared by its gas (D21). Where the words of
 * modules that the messages need weigh more, those count.
 */
const GAS_NS = 1.5;

/** What execution needs from the block around the transaction. */
export interface CosmosEnvironment {
  /** Version of the chain's rules; absent: what the state says. */
  readonly appVersion?: number;
  readonly state: JournaledState;
  readonly height: number;
  /** Unix milliseconds of the block's time. */
  readonly timeMs: number;
  readonly maxTransactionGas: bigint;
  /** What compute units are counted by. */
  readonly computeWeights: WeightsVersion;
  /** Compute units that a transaction may take (D21). */
  readonly maxTransactionComputeNs: number;
  /** What is left of the block's; absent where no block is around it. */
  readonly computeLeftNs?: number;
  readonly feeCollector: Address;
  /** Where coins of the validators lie: no message pays there. */
  readonly validatorsPool: Address;
  /** Fees of the block before it; absent where no block is around it. */
  readonly feesBeforeAtoken?: Atoken;
  /** Nobody signed it, and its gas limit does not count: gas is what is asked for. */
  readonly isSimulated?: boolean;
}

/** Outcome of one transaction. */
export type CosmosOutcome =
  | {
      readonly included: true;
      readonly result: CosmosResult;
      readonly changes: readonly BalanceChange[];
      readonly feeAtoken: Atoken;
      /** Compute units (D21). */
      readonly computeNs: number;
    }
  | { readonly included: false; readonly fault: SdkFault };

/** Executes a transaction whose signature counts. The state is changed only if it is included. */
export function executeCosmosTransaction(
  transaction: CosmosBlockTransaction,
  environment: CosmosEnvironment,
): CosmosOutcome {
  const { tx, from } = transaction;
  const { state } = environment;
  const fault = anteFault(transaction, environment);
  if (fault !== undefined) return { included: false, fault };
  const fees = payFee(transaction, environment);
  const run = new MessageRun(transaction, environment);
  state.checkpoint();
  const failed = run.all();
  if (failed === undefined) state.commit();
  else state.revert();
  const odd = (environment.feesBeforeAtoken ?? 0n) % 2n === 1n;
  const events = [
    ...anteEvents(transaction, fees, odd),
    ...(failed === undefined ? run.events : []),
  ];
  const gasUsed = run.gasUsed;
  const result: CosmosResult = {
    code: failed?.code ?? 0,
    codespace: failed?.codespace ?? "",
    log: failed?.log ?? "",
    data: failed === undefined ? run.data() : new Uint8Array(0),
    gasUsed,
    events,
  };
  const undone = failed && ({ effective: false, error: changeError(failed.log) } as const);
  const moves = run.changes.map((change) => (undone ? { ...change, ...undone } : change));
  return {
    included: true,
    result,
    changes: [...fees, ...moves],
    feeAtoken: from === environment.feeCollector ? 0n : tx.feeAtoken,
    computeNs: run.computeNs,
  };
}

/** The rule that keeps the transaction out of the block as it stands. */
function anteFault(
  { tx, from }: CosmosBlockTransaction,
  environment: CosmosEnvironment,
): SdkFault | undefined {
  const { state, height, isSimulated = false } = environment;
  const account = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const version = environment.appVersion ?? appVersion(state);
  const own = isSimulated ? undefined : staticCosmosFault(tx, environment);
  if (own !== undefined) return own;
  const isFirst = version < SDK_REFUSALS_VERSION;
  const long = isFirst ? undefined : memoFault(tx);
  if (long !== undefined) return long;
  const routed = routingFault(tx.messages);
  if (routed !== undefined) return routed;
  if (account.codeHash !== EMPTY_CODE_HASH) {
    return sdkFault(SDK_CODE.unauthorized, `the sender ${accountText(from)} is a contract`);
  }
  return (
    timeoutFault(tx, height) ??
    (isFirst ? undefined : timestampFault(tx, environment.timeMs)) ??
    sequenceFault(account.nonce, tx.nonce) ??
    balanceFault(state.spendableNow(from), tx.feeAtoken)
  );
}

/** Takes the fee and counts the sequence: what stays whatever the messages do. */
function payFee(
  { tx, from }: CosmosBlockTransaction,
  { state, feeCollector }: CosmosEnvironment,
): BalanceChange[] {
  const account = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const { feeAtoken } = tx;
  state.putAccount(from, {
    ...account,
    nonce: account.nonce + 1n,
    balanceAtoken: account.balanceAtoken - feeAtoken,
  });
  if (feeAtoken === 0n) return [];
  state.moveBalance(feeCollector, feeAtoken);
  return [changeOf("FEE", from, feeCollector, feeAtoken)];
}

function changeOf(
  reason: BalanceReason,
  from: Address,
  to: Address | undefined,
  amountAtoken: Atoken,
): BalanceChange {
  return { reason, from, to, amountAtoken, effective: true, tracePath: undefined };
}

/** Events of x/auth, in the SDK's order. */
function anteEvents(
  { tx, from }: CosmosBlockTransaction,
  fees: readonly BalanceChange[],
  oddFeesBefore: boolean,
): AbciEvent[] {
  const payer = accountText(from);
  return [
    ...fees.flatMap(moneyEvents),
    event("tx", { fee: coinsText(tx.fee), fee_payer: payer }),
    ...feeBurnEvents(feeOf({ changes: fees }), () => oddFeesBefore),
    event("tx", { acc_seq: `${payer}/${tx.nonce}` }),
    event("tx", { signature: Buffer.from(tx.signature).toString("base64") }),
  ];
}

/** The messages of one transaction; they pay for the words of modules that they need. */
class MessageRun implements WordListener {
  readonly changes: BalanceChange[] = [];
  readonly events: AbciEvent[] = [];
  private readonly responses: { readonly typeUrl: string; readonly bytes: Uint8Array }[] = [];
  private used: bigint;
  private readonly baseNs: number;
  private wordsNs = 0;

  constructor(
    private readonly transaction: CosmosBlockTransaction,
    private readonly environment: CosmosEnvironment,
  ) {
    const { isSimulated = false } = environment;
    this.used = (isSimulated ? simulatedAnteGas : anteGas)(transaction.tx);
    this.baseNs = leastComputeNs(
      { data: transaction.tx.raw, accessList: [] },
      environment.computeWeights,
    );
  }

  /** At most a transaction's share: with all of it one has failed, and is in the block. */
  get computeNs(): number {
    const { maxTransactionComputeNs } = this.environment;
    const gasNs = Math.ceil(Number(this.gasUsed) * GAS_NS);
    return this.baseNs + Math.max(gasNs, Math.min(this.wordsNs, maxTransactionComputeNs));
  }

  read(): void {
    this.spend(WORD_READ_NS);
  }

  write(): void {
    this.spend(WORD_WRITE_NS);
  }

  /** Stops at the transaction's share, and at what is left of the block's. */
  private spend(ns: number): void {
    const { maxTransactionComputeNs, computeLeftNs = Number.POSITIVE_INFINITY } = this.environment;
    this.wordsNs += ns;
    if (this.wordsNs <= Math.min(maxTransactionComputeNs, computeLeftNs)) return;
    const text = "out of compute units: the messages need more than a transaction may take";
    throw new MessageFailure(sdkFault(SDK_CODE.outOfGas, text));
  }

  /** At most the gas limit: what is beyond it was never used. */
  get gasUsed(): bigint {
    const { gasLimit } = this.transaction.tx;
    if (this.environment.isSimulated === true) return this.used;
    return this.used < gasLimit ? this.used : gasLimit;
  }

  /** Runs all of them, or as many as succeed. @returns why one failed */
  all(): SdkFault | undefined {
    const { state } = this.environment;
    state.wordListener = this;
    try {
      return this.each();
    } finally {
      state.wordListener = undefined;
    }
  }

  private each(): SdkFault | undefined {
    for (const index of this.transaction.tx.messages.keys()) {
      try {
        this.one(index);
      } catch (error) {
        if (!(error instanceof MessageFailure)) throw error;
        const { code, codespace, log } = error.fault;
        const text = `failed to execute message; message index: ${index}: ${log}`;
        return { code, codespace, log: text };
      }
    }
    return undefined;
  }

  /** `cosmos.base.abci.v1beta1.TxMsgData`. */
  data(): Uint8Array {
    const writer = new ProtoWriter();
    for (const { typeUrl, bytes } of this.responses) {
      writer.message(2, new ProtoWriter().bytes(1, `${typeUrl}Response`).bytes(2, bytes));
    }
    return writer.finish();
  }

  private one(index: number): void {
    const { tx, from } = this.transaction;
    const message = tx.messages[index];
    const handler = message === undefined ? undefined : handlerOf(message);
    if (message === undefined || handler === undefined) {
      throw new RangeError("a message without a handler");
    }
    const [module = "", ...older] = moduleWords(handler.module);
    const sender = accountText(from);
    const emitted = [
      event("message", { action: message.typeUrl, sender, module }),
      ...older.map((word) => event("message", { module: word, sender })),
    ];
    const bytes = handler.run(message.message, this.context(emitted));
    this.responses.push({ typeUrl: message.typeUrl, bytes });
    this.events.push(...emitted.map((one) => withLast(one, "msg_index", index.toString())));
  }

  private context(emitted: AbciEvent[]): MessageContext {
    const { environment } = this;
    const { state, height, timeMs, feeCollector, validatorsPool } = environment;
    const version = environment.appVersion ?? appVersion(state);
    const blockedOf = { appVersion: version, feeCollector, validatorsPool };
    return {
      appVersion: version,
      state,
      height,
      timeMs,
      validatorsPool,
      signer: this.transaction.from,
      isBlocked: (address) => isBlockedAccount(address, blockedOf),
      useGas: (gas, location) => this.useGas(gas, location),
      emit: (type, attributes) => void emitted.push(event(type, attributes)),
      moveCoins: (reason, from, to, amountAtoken) => {
        const change = changeOf(reason, from, to, amountAtoken);
        // Recorded first: a move that fails is shown with its transaction. Records have room for a word.
        if (amountAtoken <= MAX_WORD) this.changes.push(change);
        moveBalances(state, from, to, amountAtoken);
        emitted.push(...moneyEvents(change));
      },
    };
  }

  private useGas(gas: bigint, location: string): void {
    this.used += gas;
    const { gasLimit } = this.transaction.tx;
    const { isSimulated = false, maxTransactionGas } = this.environment;
    const most = isSimulated ? maxTransactionGas : gasLimit;
    if (this.used > most) throw new MessageFailure(outOfGas(location, most, this.used));
  }
}
