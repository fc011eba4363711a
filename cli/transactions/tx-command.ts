/** What a command of `causeway tx <module>` is: its words, and the messages that it makes. */
import type { Address } from "../../chain/address.js";
import type { TxMessage } from "./document.js";
import type { TxNode } from "./tx-node.js";
import type { Flags } from "./values.js";

/** What messages are made from. */
export interface MessageInput {
  /** As many as the command has. */
  readonly args: readonly string[];
  readonly flags: Flags;
  /** The account of `--from`. */
  readonly signer: Address;
  /** The home, whose validator key a registration may take. */
  readonly home: string;
  /** Throws USAGE for --offline. */
  readonly node: () => Promise<TxNode>;
  /** Tells people something beside the messages. */
  readonly warn: (line: string) => void;
}

/** One command. */
export interface TxCommand {
  /** Words behind `tx`, for example "staking delegate". */
  readonly words: string;
  readonly aliases?: readonly string[];
  readonly description: string;
  /** Its arguments in order: "<one>", "[maybe]", "<several...>". */
  readonly args: readonly string[];
  /**
   * Whether its first argument says who signs, as `--from` does; "maybe" where it may be left out.
   * `messages` never sees it.
   */
  readonly sender?: "maybe" | "always";
  /** Flags beside those of every transaction: "--name <value>" and what it is. */
  readonly options?: readonly (readonly [string, string])[];
  messages(input: MessageInput): readonly TxMessage[] | Promise<readonly TxMessage[]>;
}
