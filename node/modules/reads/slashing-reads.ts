/** What is asked of slashing. */
import type { JournaledState } from "../../state/journaled-state.js";
import { moduleParam } from "../module-params.js";

export { type SigningInfo, signingInfo } from "../slashing/signing.js";

/** Parameters of slashing; the time in milliseconds, fractions 10^-18. */
export function readSlashingParams(state: JournaledState) {
  return {
    signedBlocksWindow: moduleParam(state, "slashing", "signed_blocks_window"),
    minSignedPerWindow: moduleParam(state, "slashing", "min_signed_per_window"),
    downtimeJailMs: moduleParam(state, "slashing", "downtime_jail_duration"),
    slashFractionDoubleSign: moduleParam(state, "slashing", "slash_fraction_double_sign"),
    slashFractionDowntime: moduleParam(state, "slashing", "slash_fraction_downtime"),
  };
}
