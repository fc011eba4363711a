/**
 * What the messages of a Cosmos transaction act through: gas, events and coins of one message. All
 * of it is undone together when a message of the transaction fails.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceReason } from "../../chain/balance-change.js";
import type { ProtoMessage } from "../../chain/cosmos/field-schema.js";
import type { SdkFault } from "../../chain/cosmos/sdk-fault.js";
import type { JournaledState } from "../state/journaled-state.js";

/** A message failed; its transaction is in the block, and only its fee is paid. */
export class MessageFailure extends Error {
  constructor(readonly fault: SdkFault) {
    super(fault.log);
  }
}

/** One message while it runs. */
export interface MessageContext {
  /** The accounts, with everything that ran before. */
  readonly state: JournaledState;
  readonly height: number;
  /** Unix milliseconds of the block's time. */
  readonly timeMs: number;
  /** The account that signed. */
  readonly signer: Address;
  /** True for accounts of the system, which take no coins from outside. */
  isBlocked(address: Address): boolean;
  /** Takes gas. Throws `MessageFailure` with code 11 when none is left. */
  useGas(gas: bigint, location: string): void;
  /** An event, its attributes in the order in which they are given. */
  emit(type: string, attributes: Readonly<Record<string, string>>): void;
  /**
   * Moves coins, journals the move and emits the bank's events of it. Throws `MessageFailure` with
   * code 5 when the payer has too little.
   */
  moveCoins(reason: BalanceReason, from: Address, to: Address, amountAtoken: bigint): void;
}

/** What runs a message: synchronous, so that nothing comes between its reads and its writes. */
export interface MessageHandler {
  /** Value of the attribute `module` of the message's event. */
  readonly module: string;
  /** @returns protobuf bytes of the response. Throws `MessageFailure`. */
  run(message: ProtoMessage, context: MessageContext): Uint8Array;
}
