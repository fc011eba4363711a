/**
 * Makes time follow gas: the parts of @ethereumjs/evm that a contract could use to buy much time
 * for little gas are replaced by our own. Blocks and call workers use the same EVM.
 */
import type { EVM } from "@ethereumjs/evm";
import { installFrames, type NativeFrames } from "./frames.js";
import { installOpcodes } from "./opcodes.js";
import { installJournal } from "./warm-journal.js";

/** Tunes an EVM that has not executed anything yet. */
export function tuneEvm(evm: EVM, natives: NativeFrames): void {
  installJournal(evm);
  installOpcodes(evm);
  installFrames(evm, natives);
}
