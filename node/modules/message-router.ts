/** Which handler runs a message: every message that transactions may carry passes here. */
import type { AnyMessage } from "../../chain/cosmos/field-schema.js";
import { SDK_CODE, type SdkFault, sdkFault } from "../../chain/cosmos/sdk-fault.js";
import { BANK_HANDLERS } from "./bank-messages.js";
import { govHandlers } from "./gov-messages.js";
import { GOVERNED_HANDLERS } from "./governed-messages.js";
import type { MessageHandler } from "./message-context.js";
import { STAKING_HANDLERS } from "./staking-messages.js";

/** Handlers by the full names of their messages. */
const HANDLERS: ReadonlyMap<string, MessageHandler> = new Map<string, MessageHandler>([
  ...BANK_HANDLERS,
  ...STAKING_HANDLERS,
  ...govHandlers((message) => handlerOf(message)),
  ...GOVERNED_HANDLERS,
]);

/** The handler of a message; undefined where nothing runs it. */
export function handlerOf({ schema }: AnyMessage): MessageHandler | undefined {
  return HANDLERS.get(schema.name);
}

/** Code 6 for the first message that nothing runs: it never gets into the pool or a block. */
export function routingFault(messages: readonly AnyMessage[]): SdkFault | undefined {
  const stranger = messages.find((message) => handlerOf(message) === undefined);
  if (stranger === undefined) return undefined;
  const text = `unrecognized message route: ${stranger.typeUrl.slice(0, 100)}`;
  return sdkFault(SDK_CODE.unknownRequest, text);
}
