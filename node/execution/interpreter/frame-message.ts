/** A message of a frame, or of a transaction: whom it names, what it brings, who sent it how. */
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import type { FrameStart } from "../../state/balance-recorder.js";

/** Instructions that send messages; a transaction sends a CALL or CREATE. */
export const MESSAGE_OPCODES = {
  CREATE: 0xf0,
  CALL: 0xf1,
  CALLCODE: 0xf2,
  DELEGATECALL: 0xf4,
  CREATE2: 0xf5,
  STATICCALL: 0xfa,
} as const;

/** Which of them sent a message. */
export type MessageOpcode = (typeof MESSAGE_OPCODES)[keyof typeof MESSAGE_OPCODES];

/** A message as its maker sends it. */
export interface Message {
  readonly kind: FrameStart["kind"];
  readonly opcode: MessageOpcode;
  readonly caller: Address;
  /** Whose storage and balance the frame has; undefined for a creation. */
  readonly to: Address | undefined;
  /** Whose code runs. */
  readonly codeAddress: Address | undefined;
  readonly valueAtoken: Atoken;
  /** Call data, or the code of a creation. */
  readonly input: Uint8Array;
  readonly gas: number;
  readonly isStatic: boolean;
  readonly depth: number;
}
