/** Parameters by the names of older releases. */
export { legacySubspaces, readLegacyParam } from "../params/legacy-params.js";
