/** What CometBFT's own code says: test/fixtures/consensus/scenarios.go made it. */
import { readFileSync } from "node:fs";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import type { Hash32 } from "../../../chain/hex.js";

interface PowerVector {
  readonly key: number;
  readonly power: string;
}

/** One validator of a set. */
export interface ValidatorVector {
  readonly address: string;
  readonly power: string;
  readonly priority: string;
}

/** A block id; null is nil. */
export type BlockIdVector = {
  readonly hash: string;
  readonly total: number;
  readonly partsHash: string;
} | null;

interface Scenarios {
  /** Names of CometBFT's tests by file. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
  /** Updates of validator sets. */
  readonly changes: readonly {
    readonly test: string;
    readonly start: readonly PowerVector[];
    readonly turns: number;
    readonly updates: readonly PowerVector[];
    /** Empty when the updates are taken. */
    readonly error: string;
    readonly validators: readonly ValidatorVector[];
    readonly proposers: readonly string[];
  }[];
  /** Turns from any priorities. */
  readonly turns: readonly {
    readonly start: readonly ValidatorVector[];
    readonly times: number;
    readonly priorities: readonly string[];
    readonly proposer: string;
  }[];
  /** Evidence of two votes for these blocks. */
  readonly orders: readonly {
    readonly a: BlockIdVector;
    readonly b: BlockIdVector;
    readonly bytes: string;
    readonly hash: string;
  }[];
  /** Queries and their one spelling, null where they are refused. */
  readonly parsed: readonly { readonly text: string; readonly canonical: string | null }[];
  readonly matched: readonly {
    readonly text: string;
    readonly events: Readonly<Record<string, readonly string[]>>;
    readonly matches: boolean;
  }[];
  /** JSON of the consensus RPC by what it shows. */
  readonly shapes: Readonly<Record<string, string>>;
}

/** Reads the fixture. */
export function readScenarios(): Scenarios {
  const file = new URL("../../fixtures/consensus/cometbft-scenarios.json", import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")) as Scenarios;
}

/** A vector's block id as votes have it. */
export function blockIdOfVector(vector: BlockIdVector): BlockId | undefined {
  if (vector === null) return undefined;
  const { hash, total, partsHash } = vector;
  return { hash: hash as Hash32, parts: { total, hash: partsHash as Hash32 } };
}
