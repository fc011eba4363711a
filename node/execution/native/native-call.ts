/** One call of a contract of the chain: its meter, its logs, and what modules act through. */
import { type Address, parseBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import type { BalanceReason } from "../../../chain/balance-change.js";
import { accountText, event } from "../../../chain/abci-event.js";
import { bytesToBigint } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import type { Atoken } from "../../../chain/units.js";
import { type MessageContext, moduleWords } from "../../modules/message-context.js";
import { moveBalances } from "../../modules/move-coins.js";
import { isBlockedAccount } from "../../modules/blocked-accounts.js";
import { appVersion } from "../../modules/upgrade/plan.js";
import type { WordListener } from "../../state/journaled-state.js";
import { isEmptyAccount } from "../../store/account-record.js";
import { OUT_OF_GAS } from "../interpreter/halt.js";
import {
  COLD_ACCOUNT_GAS,
  COLD_SLOT_GAS,
  LOG_BYTE_GAS,
  LOG_TOPIC_GAS,
  NEW_ACCOUNT_GAS,
  VALUE_GAS,
  WARM_GAS,
} from "../interpreter/schedule.js";
import { writeGas } from "../interpreter/opcodes/storage.js";
import { wordToSlot } from "../interpreter/words.js";
import type { NativeHost, NativeMessage } from "./native-host.js";
import { DISTRIBUTION, logOf } from "./native-abis.js";
import { EVENT_GAS, EVENT_NS, LOG_NS, WORD_READ_NS, WORD_WRITE_NS } from "./native-gas.js";

/** LOG0 of the EVM. */
const LOG_GAS = 375;

/** A call while it runs. */
export class NativeCall implements WordListener {
  gasUsed = 0;

  constructor(
    readonly message: NativeMessage,
    readonly host: NativeHost,
  ) {}

  /** Version of the rules by which the block is made. */
  get appVersion(): number {
    const { facts, state } = this.host;
    return facts.appVersion ?? appVersion(state);
  }

  /** Takes gas and compute units. @throws OUT_OF_GAS, OUT_OF_COMPUTE */
  charge(gas: number, ns: number): void {
    this.gasUsed += gas;
    if (this.gasUsed > this.message.gas) throw OUT_OF_GAS;
    this.host.spend(ns);
  }

  /** A word that a module reads costs what SLOAD does. */
  read(address: Address, slot: bigint): void {
    this.host.watcher?.touch?.(address, slot);
    const isCold = this.host.warmSlot(address, slot);
    const { coldSlotNs } = this.host.weights;
    this.charge(isCold ? COLD_SLOT_GAS : WARM_GAS, WORD_READ_NS + (isCold ? coldSlotNs : 0));
  }

  /** A word that a module writes costs what SSTORE does, without refunds. */
  write(address: Address, slot: bigint, value: bigint): void {
    const { state, watcher, weights } = this.host;
    watcher?.touch?.(address, slot);
    const isCold = this.host.warmSlot(address, slot);
    this.charge(isCold ? COLD_SLOT_GAS : 0, WORD_WRITE_NS + (isCold ? weights.coldSlotNs : 0));
    const key = wordToSlot(slot);
    const current = bytesToBigint(state.storageNow(address, key));
    if (value === current) {
      this.charge(WARM_GAS, 0);
      return;
    }
    const original = bytesToBigint(state.transactionStorageNow(address, key));
    this.charge(writeGas(original, current), original === current ? weights.slotChangeNs : 0);
  }

  /** An account that is looked at costs what BALANCE does. */
  touch(address: Address): void {
    this.host.watcher?.touch?.(address, undefined);
    const isCold = this.host.warmAddress(address);
    this.charge(isCold ? COLD_ACCOUNT_GAS : WARM_GAS, isCold ? this.host.weights.coldAccountNs : 0);
  }

  /** Adds a log to the frame. */
  log(log: Log): void {
    const { topics, data } = log;
    this.charge(
      LOG_GAS + LOG_TOPIC_GAS * topics.length + LOG_BYTE_GAS * data.length,
      LOG_NS + this.host.weights.logByteNs * data.length,
    );
    this.host.log(log);
  }

  /** What functions of modules act through; the caller is who signed. */
  context(): MessageContext {
    const { host, message, appVersion: version } = this;
    const { state, block, facts } = host;
    return {
      appVersion: version,
      state,
      height: block.height,
      timeMs: facts.timeMs,
      validatorsPool: facts.validatorsPool,
      signer: message.caller,
      isBlocked: (address) => isBlockedAccount(address, { ...facts, appVersion: version }),
      useGas: (gas) => this.charge(Number(gas), 0),
      emit: (type, attributes) => this.emit(type, attributes),
      moveCoins: (reason, from, to, amountAtoken) => this.moveCoins(reason, from, to, amountAtoken),
    };
  }

  /** An event of a module; rewards that are paid have a log, too, whatever paid them. */
  emit(type: string, attributes: Readonly<Record<string, string>>): void {
    this.charge(EVENT_GAS, EVENT_NS);
    this.host.recorder?.emit(event(type, attributes));
    if (type === "withdraw_rewards") this.log(rewardLog(attributes));
  }

  /**
   * The sender of a message and its module, as searches of SDK chains ask for them. One event is paid
   * for, however many words the module has: gas is a rule of the chain, words are none.
   */
  announce(module: string): void {
    this.charge(EVENT_GAS, EVENT_NS);
    const sender = accountText(this.message.caller);
    for (const word of moduleWords(module)) {
      this.host.recorder?.emit(event("message", { module: word, sender }));
    }
  }

  private moveCoins(
    reason: BalanceReason,
    from: Address,
    to: Address | undefined,
    amountAtoken: Atoken,
  ): void {
    const { state, recorder, watcher, weights } = this.host;
    this.touch(from);
    if (to !== undefined) {
      this.touch(to);
      const target = state.accountNow(to);
      if (target === undefined || isEmptyAccount(target)) this.charge(NEW_ACCOUNT_GAS, 0);
    }
    this.charge(VALUE_GAS, weights.valueMoveNs);
    // The recorder is told of the move as a whole, not of its two differences.
    const listener = state.balanceListener;
    state.balanceListener = undefined;
    try {
      moveBalances(state, from, to, amountAtoken);
    } finally {
      state.balanceListener = listener;
    }
    recorder?.moved(reason, from, to, amountAtoken);
    watcher?.moved?.(from, to, amountAtoken);
  }
}

/** The log of `withdraw_rewards`. */
function rewardLog(attributes: Readonly<Record<string, string>>): Log {
  const { delegator = "", validator = "", amount = "" } = attributes;
  const digits = /^[0-9]+/.exec(amount)?.[0] ?? "0";
  return logOf(DISTRIBUTION, "WithdrawDelegatorReward", {
    delegatorAddress: parseBech32(delegator),
    validatorAddress: parseBech32(validator, VALIDATOR_PREFIX),
    amount: BigInt(digits),
  });
}
