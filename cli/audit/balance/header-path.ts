/**
 * From the validators of the genesis to a header: the fewest headers of which each is signed by
 * more than a third of the one before, as a light client goes. Collecting and verifying ask the
 * same rules (`chain/consensus/light.ts`).
 */
import {
  type LightBlock,
  LightError,
  type LightRules,
  verifyLightBlock,
  verifySelfSigned,
} from "../../../chain/consensus/light.js";
import { verifySignature } from "../../../chain/consensus/ed25519.js";
import { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { errorCode } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { AuditError } from "../errors.js";
import { type LightBlockJson, MAX_PATH_HEADERS, parseLightBlock } from "./bundle.js";

/** Headers of a node that need not be trusted. */
export interface HeaderSource {
  /** Oldest height whose commit and validators the node still has. */
  oldestHeight(): Promise<Height>;
  lightBlock(height: Height): Promise<LightBlockJson>;
}

/** The validators that the genesis names. */
function genesisValidators({ validators }: Pick<Genesis, "validators">): ValidatorSet {
  return ValidatorSet.genesis(
    validators.map(({ publicKey, power }) => ({
      publicKey: Uint8Array.from(Buffer.from(publicKey, "base64")),
      power: BigInt(power),
    })),
  );
}

/**
 * Verifies a path from the genesis; only signatures count, not the clock: an auditor asks what was
 * decided then, not what is going on now.
 * @returns the last header
 * @throws LIGHT_INVALID, LIGHT_UNTRUSTED
 */
export function verifyPath(path: readonly LightBlock[], genesis: Genesis): LightBlock {
  const [first, ...others] = path;
  if (first === undefined) throw new LightError("LIGHT_INVALID", "there are no headers");
  const rules = rulesFor(path, genesis);
  if (!isOfGenesis(first, genesis)) {
    throw new LightError(
      "LIGHT_INVALID",
      `the validators of height ${first.header.height} are not those of the genesis`,
    );
  }
  verifySelfSigned(first, rules);
  let trusted = first;
  for (const next of others) {
    verifyLightBlock(trusted, next, rules);
    trusted = next;
  }
  return trusted;
}

/**
 * The headers that lead from the genesis to a height.
 * @throws GENESIS_UNREACHABLE when the node's oldest header is not signed by the genesis
 * validators; LIGHT_INVALID; what the source throws
 */
export async function collectPath(
  source: HeaderSource,
  height: Height,
  genesis: Genesis,
): Promise<readonly LightBlockJson[]> {
  const fetch = async (at: Height): Promise<Found> => {
    const json = await source.lightBlock(at);
    return { json, block: parseLightBlock(json) };
  };
  const target = await fetch(height);
  if (isOfGenesis(target.block, genesis)) return checked([target], genesis);
  const oldest = await source.oldestHeight();
  let lower = await fetch(oldest);
  if (!isOfGenesis(lower.block, genesis)) {
    const message =
      `The validators of height ${oldest}, the oldest that the node has, are not those of the ` +
      "genesis: ask a node that has all blocks.";
    throw new AuditError("GENESIS_UNREACHABLE", message);
  }
  const path = [lower];
  const above = [target];
  for (let next = above.at(-1); next !== undefined; next = above.at(-1)) {
    if (path.length + above.length > MAX_PATH_HEADERS) {
      throw new AuditError("GENESIS_UNREACHABLE", "Too many headers lead to that height.");
    }
    if (leadsTo(lower.block, next.block, genesis)) {
      path.push(next);
      lower = next;
      above.pop();
      continue;
    }
    const gap = next.block.header.height - lower.block.header.height;
    above.push(await fetch(lower.block.header.height + Math.floor(gap / 2)));
  }
  return checked(path, genesis);
}

interface Found {
  readonly json: LightBlockJson;
  readonly block: LightBlock;
}

/** A node's mistake or lie is found before a file is written. */
function checked(path: readonly Found[], genesis: Genesis): readonly LightBlockJson[] {
  verifyPath(
    path.map(({ block }) => block),
    genesis,
  );
  return path.map(({ json }) => json);
}

/** False when a header in between may lead there. */
function leadsTo(lower: LightBlock, next: LightBlock, genesis: Genesis): boolean {
  try {
    verifyLightBlock(lower, next, rulesFor([next], genesis));
    return true;
  } catch (error) {
    if (errorCode(error) === "LIGHT_UNTRUSTED") return false;
    throw error;
  }
}

function isOfGenesis(block: LightBlock, genesis: Genesis): boolean {
  return block.validators.hash() === genesisValidators(genesis).hash();
}

function rulesFor(path: readonly LightBlock[], genesis: Genesis): LightRules {
  const newest = path.reduce((latest, { header }) => {
    return header.timeNs > latest ? header.timeNs : latest;
  }, 0n);
  return {
    chainId: genesis.cosmosChainId,
    nowNs: newest,
    trustPeriodNs: newest + 1n,
    verifySignature,
  };
}
