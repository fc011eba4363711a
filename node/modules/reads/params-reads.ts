/** Parameters by the names of older releases. */
export { isLegacySubspace, legacySubspaces, readLegacyParam } from "../params/legacy-params.js";
