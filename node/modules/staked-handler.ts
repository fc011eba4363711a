/** Handlers of messages that need validators with stake. */
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import type { MessageHandler } from "./message-context.js";
import { messageFailure } from "./message-fields.js";
import { hasModules } from "./system-storage.js";

/** A handler that takes its gas first; on a chain without stake it refuses. */
export function stakedHandler(
  { module, name, gas }: { readonly module: string; readonly name: string; readonly gas: bigint },
  run: MessageHandler["run"],
): MessageHandler {
  return {
    module,
    run(message, context) {
      if (!hasModules(context.state)) {
        throw messageFailure(SDK_CODE.notSupported, "this chain has a fixed set of validators");
      }
      context.useGas(gas, name);
      return run(message, context);
    },
  };
}
