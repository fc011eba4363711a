/** What is told of deposits. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { CustomerId } from "../journal/accounts.js";
import { amountFields, balanceFields } from "../journal/amount-fields.js";
import type { NewEvent } from "../events.js";

/** A deposit that is told of now. */
export interface DueDeposit {
  /** Its public identifier. */
  readonly id: string;
  readonly address: Address;
  readonly customerId: CustomerId;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly height: Height;
  readonly txHash: Hash32;
}

/** What is told of a deposit that changes no balance of a customer. */
export function waitingEvent(type: NewEvent["type"], deposit: DueDeposit): NewEvent {
  const { id, customerId, address, asset, amountUnits, height, txHash } = deposit;
  return {
    type,
    data: {
      depositId: id,
      customerId,
      address,
      asset,
      ...amountFields(asset, amountUnits),
      blockNumber: height,
      txHash,
    },
  };
}

/** A deposit was credited, or gives more than it did: by how much its customer's balance rose. */
export function creditedEvent(deposit: DueDeposit, givenUnits: bigint): NewEvent {
  const { id, customerId, address, asset, amountUnits, height, txHash } = deposit;
  return {
    type: "deposit.credited",
    data: {
      depositId: id,
      customerId,
      address,
      asset,
      ...amountFields(asset, amountUnits),
      ...balanceFields("credited", asset, givenUnits),
      blockNumber: height,
      txHash,
    },
  };
}

/** What is told of a deposit that was lost, with what its customer's balance fell by. */
export function reversedEvent(
  deposit: Pick<DueDeposit, "id" | "asset" | "amountUnits" | "height" | "txHash"> & {
    readonly customerId: string;
  },
  takenUnits: bigint,
): NewEvent {
  const { id, customerId, asset, amountUnits, height, txHash } = deposit;
  return {
    type: "deposit.reversed",
    data: {
      depositId: id,
      customerId,
      asset,
      ...amountFields(asset, amountUnits),
      ...balanceFields("debited", asset, takenUnits),
      blockNumber: height,
      txHash,
    },
  };
}
