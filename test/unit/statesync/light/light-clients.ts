/** Light clients over servers of a few blocks, by the first of which they begin. */
import { hashConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import type { LightBlock } from "../../../../chain/consensus/light.js";
import { verifySignature } from "../../../../chain/consensus/ed25519.js";
import { LightClient } from "../../../../node/statesync/light/light-client.js";
import type { LightProvider } from "../../../../node/statesync/light/light-rpc.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import {
  HOUR_NS,
  LIGHT_CHAIN_ID,
  lightBlock,
  lightKeys,
  lightSet,
  START_NS,
} from "../../../helpers/chains/light-blocks.js";
import { FakeLightServer, type LightBlocks } from "../../../helpers/chains/light-server.js";

/** Says nothing. */
export const log = createLogger({ component: "light", level: "silent" });
/** Of who stays. */
export const signal = new AbortController().signal;

/** Their keys. */
export const keys = lightKeys(4);
/** Who signs the three blocks. */
export const validators = lightSet(keys, 20n, 10n);
/** The block that clients trust. */
export const h1 = lightBlock({ keys, validators, height: 1, timeNs: START_NS });
/** The next one. */
export const h2 = lightBlock({
  keys,
  validators: validators.advance(1),
  height: 2,
  timeNs: START_NS + HOUR_NS / 2n,
  header: { lastBlockId: h1.commit.blockId },
});
/** The last one. */
export const h3 = lightBlock({
  keys,
  validators: validators.advance(1).advance(1),
  height: 3,
  timeNs: START_NS + HOUR_NS,
  header: { lastBlockId: h2.commit.blockId },
});
/** All three. */
export const good = chainOf([h1, h2, h3]);

/** Blocks by their heights. */
export function chainOf(blocks: readonly LightBlock[]): LightBlocks {
  return new Map(blocks.map((block) => [block.header.height, block]));
}

/** Another second block, by the same keys. */
export const block2 = (part: Partial<Parameters<typeof lightBlock>[0]>) =>
  lightBlock({ keys, validators, height: 2, timeNs: START_NS + HOUR_NS, ...part });
/** Another third one. */
export const block3 = (part: Partial<Parameters<typeof lightBlock>[0]>) =>
  lightBlock({ keys, validators, height: 3, timeNs: START_NS + 2n * HOUR_NS, ...part });

/** What a client begins with. */
export interface Plan {
  readonly servers: readonly LightProvider[];
  readonly trusted?: LightBlock;
  readonly periodNs?: bigint;
  readonly nowNs?: bigint;
}

/** A light client. */
export function client({
  servers,
  trusted = h1,
  periodNs = 4n * HOUR_NS,
  nowNs,
}: Plan): LightClient {
  const nowMs = Number((nowNs ?? START_NS + 3n * HOUR_NS) / 1_000_000n);
  return new LightClient({
    providers: servers,
    chainId: LIGHT_CHAIN_ID,
    trust: {
      height: trusted.header.height,
      hash: hashConsensusHeader(trusted.header),
      periodNs,
    },
    verifySignature,
    clock: { nowMs: () => nowMs, monotonicMs: () => 0 },
    log,
  });
}

/** Two servers with the same blocks. */
export function twice(blocks: LightBlocks): FakeLightServer[] {
  return [new FakeLightServer("one", blocks), new FakeLightServer("two", blocks)];
}

/** A block that is there. */
export function at(blocks: LightBlocks, height: number): LightBlock {
  const block = blocks.get(height);
  if (block === undefined) throw new Error(`no block ${height}`);
  return block;
}

/** The code that a work fails with; empty where it does not. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "",
    (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : "?"),
  );
}
