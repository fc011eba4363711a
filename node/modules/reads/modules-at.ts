/** The port of servers to the modules: their state after a block, for the functions beside this file. */
import type { Height } from "../../../chain/hex.js";
import { StateAt } from "../../state/state-at.js";
import type { StateReader } from "../../store/state-reader.js";

/** The modules' state at every height that the node still has. */
export interface ModulesAt {
  /** Throws HISTORY_PRUNED. */
  at(height: Height): StateAt;
}

/** Makes the port. @param readerAt state after a block; throws HISTORY_PRUNED */
export function createModulesAt(readerAt: (height: Height) => StateReader): ModulesAt {
  return { at: (height) => new StateAt(readerAt(height)) };
}
