/**
 * What the messages of a Cosmos transaction act through: gas, events and coins of one message. All
 * of it is undone together when a message of the transaction fails.
 */
import type { Address } from "../../chain/address.js";
import type { AnyMessage, ProtoMessage } from "../../chain/cosmos/field-schema.js";
import type { ModuleContext } from "./module-context.js";

/** One message while it runs. */
export interface MessageContext extends ModuleContext {
  /** The account that signed. */
  readonly signer: Address;
  /** Takes gas. Throws `MessageFailure` with code 11 when none is left. */
  useGas(gas: bigint, location: string): void;
}

/**
 * What older releases of the SDK called a module in `message.module`: x/gov was "governance" up to
 * 0.46. Both words are told, the older one in an event of its own as those had it (D6).
 */
const OLDER_MODULE_WORDS: Readonly<Record<string, string>> = { gov: "governance" };

/** All values of `message.module` for a module, the present one first. */
export function moduleWords(module: string): readonly string[] {
  const older = OLDER_MODULE_WORDS[module];
  return older === undefined ? [module] : [module, older];
}

/** What runs a message; undefined where nothing does. */
export type HandlerOf = (message: AnyMessage) => MessageHandler | undefined;

/** What runs a message: synchronous, so that nothing comes between its reads and its writes. */
export interface MessageHandler {
  /** Value of the attribute `module` of the message's event. */
  readonly module: string;
  /** @returns protobuf bytes of the response. Throws `MessageFailure`. */
  run(message: ProtoMessage, context: MessageContext): Uint8Array;
  /**
   * Of messages that are looked at before they may be proposed: changes nothing.
   * Throws `MessageFailure` where running it in this state would fail.
   */
  rehearse?(message: ProtoMessage, context: ModuleContext): void;
}
