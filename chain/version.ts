/** The version of everything in this repository; a test holds it against package.json. */

/** Semantic version of the kit, told by the node, the sidecar and `causeway --version`. */
export const KIT_VERSION = "0.1.0";
