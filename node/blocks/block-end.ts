/**
 * What the modules act through at the end of a block: its coins and its events, which are the
 * block's own and no transaction's.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import { accountText, amountText, event } from "../../chain/abci-event.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import { SDK_CODE, sdkFault } from "../../chain/cosmos/sdk-fault.js";
import { isBlockedAccount } from "../modules/blocked-accounts.js";
import { type BlockEndContext, MessageFailure } from "../modules/module-context.js";
import type { JournaledState } from "../state/journaled-state.js";
import { blockChange } from "./fees.js";

/** The place of a block that ends. */
export interface BlockEndOptions {
  readonly appVersion: number;
  readonly state: JournaledState;
  readonly height: number;
  readonly timeMs: number;
  readonly validatorsPool: Address;
  readonly feeCollector: Address;
}

/** Moves and events of a block's end, as far as they were not given up. */
export class BlockEnd {
  readonly changes: BalanceChange[] = [];
  readonly events: AbciEvent[] = [];
  readonly context: BlockEndContext;

  constructor(private readonly options: BlockEndOptions) {
    this.context = {
      ...options,
      isBlocked: (address) => isBlockedAccount(address, options),
      emit: (type, attributes) => void this.events.push(event(type, attributes)),
      moveCoins: (reason, from, to, amountAtoken) => {
        this.move(blockChange(reason, from, to, amountAtoken));
      },
      attempt: (work) => this.attempt(work),
    };
  }

  /** Moves coins and journals the moves. Throws `MessageFailure` when a payer has too little. */
  move(changes: readonly BalanceChange[]): void {
    const { state } = this.options;
    for (const change of changes) {
      const { from, to, amountAtoken } = change;
      if (from !== undefined && !state.moveBalance(from, -amountAtoken)) {
        const text = `${accountText(from)} has less than ${amountText(amountAtoken)}`;
        throw new MessageFailure(sdkFault(SDK_CODE.insufficientFunds, text));
      }
      if (to !== undefined) state.moveBalance(to, amountAtoken);
      this.changes.push(change);
    }
  }

  private attempt(work: () => void): MessageFailure | undefined {
    const { state } = this.options;
    const [changeCount, eventCount] = [this.changes.length, this.events.length];
    state.checkpoint();
    try {
      work();
      state.commit();
      return undefined;
    } catch (error) {
      state.revert();
      this.changes.length = changeCount;
      this.events.length = eventCount;
      if (error instanceof MessageFailure) return error;
      throw error;
    }
  }
}
