/** The move of coins behind every `moveCoins`: both sides, or nothing and the SDK's words for it. */
import type { Address } from "../../chain/address.js";
import { balanceFault } from "../../chain/cosmos/ante.js";
import { SDK_CODE, sdkFault } from "../../chain/cosmos/sdk-fault.js";
import { BASE_DENOM, type Atoken } from "../../chain/units.js";
import type { JournaledState } from "../state/journaled-state.js";
import { MessageFailure } from "./module-context.js";

/** Moves coins; without `to` they cease to be. Throws `MessageFailure` with code 5. */
export function moveBalances(
  state: JournaledState,
  from: Address,
  to: Address | undefined,
  amountAtoken: Atoken,
): void {
  const had = state.spendableNow(from);
  if (!state.moveBalance(from, -amountAtoken)) {
    throw new MessageFailure(
      balanceFault(had, amountAtoken) ??
        sdkFault(SDK_CODE.insufficientFunds, `${amountAtoken}${BASE_DENOM}`),
    );
  }
  if (to !== undefined) state.moveBalance(to, amountAtoken);
}
