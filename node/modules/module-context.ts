/**
 * What the functions of the modules act through: the block's place, the accounts, and the one way
 * in which coins move. Whoever calls them gives the context: a message of a Cosmos transaction or
 * the end of a block. All of them are synchronous: nothing comes between reads and writes.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceReason } from "../../chain/balance-change.js";
import type { SdkFault } from "../../chain/cosmos/sdk-fault.js";
import type { Atoken } from "../../chain/units.js";
import type { JournaledState } from "../state/journaled-state.js";

/** A message failed; its transaction is in the block, and only its fee is paid. */
export class MessageFailure extends Error {
  constructor(readonly fault: SdkFault) {
    super(fault.log);
  }
}

/** A refusal of a module, with its code in the module's codespace, as the SDK numbers them. */
export function moduleFailure(codespace: string, code: number, log: string): MessageFailure {
  return new MessageFailure({ codespace, code, log });
}

/** The state while modules change it. */
export interface ModuleContext {
  /** Version of the chain's rules by which the block is made. */
  readonly appVersion: number;
  /** The accounts, with everything that ran before. */
  readonly state: JournaledState;
  readonly height: number;
  /** Unix milliseconds of the block's time. */
  readonly timeMs: number;
  /** Where the mint's share of the validators lies until it is withdrawn (D22). */
  readonly validatorsPool: Address;
  /** An event, its attributes in the order in which they are given. */
  emit(type: string, attributes: Readonly<Record<string, string>>): void;
  /** True for accounts of the system, which take no coins from outside. */
  isBlocked(address: Address): boolean;
  /**
   * Moves coins and journals the move; both are undone together. Without `to` they cease to be.
   * Throws `MessageFailure` with code 5 when the payer has too little.
   */
  moveCoins(
    reason: BalanceReason,
    from: Address,
    to: Address | undefined,
    amountAtoken: Atoken,
  ): void;
}

/** The end of a block, which has no transaction around it that would be undone. */
export interface BlockEndContext extends ModuleContext {
  /**
   * Does all of something or nothing: a failure undoes its state, its coins and its events.
   * @returns why it failed; other faults are thrown on
   */
  attempt(work: () => void): MessageFailure | undefined;
}
