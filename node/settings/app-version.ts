/**
 * Versions of a chain's rules: `version.app` of its headers. The genesis names the one that a chain
 * begins with, upgrades raise it (`node/modules/upgrade`), and a program goes by the rules of any of
 * them (ADR 54).
 */

/** Rules of chains whose genesis names no version. */
export const FIRST_APP_VERSION = 1;

/** From this one on, messages are refused with the SDK's codes in the order in which it looks. */
export const SDK_REFUSALS_VERSION = 2;

/** The newest that this program knows; new chains begin with it. */
export const NEWEST_APP_VERSION = SDK_REFUSALS_VERSION;

/** An upgrade that a program can make. */
export interface KnownUpgrade {
  /** Name of the plan. */
  readonly name: string;
  /** Version of the rules from the block after the plan's height on; higher than those before. */
  readonly appVersion: number;
}

/** Those of this release. What each changes in the state: `node/modules/upgrade/upgrades.ts`. */
export const KNOWN_UPGRADES = [
  { name: "sdk-refusals", appVersion: SDK_REFUSALS_VERSION },
] as const satisfies readonly KnownUpgrade[];
