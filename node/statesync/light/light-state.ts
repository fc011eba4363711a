/** Everything that must be proven of a height before a snapshot of it is fetched. */
import type { BlockId } from "../../../chain/consensus/block-id.js";
import { type Commit, EMPTY_COMMIT, hashCommit } from "../../../chain/consensus/commit.js";
import {
  type ConsensusHeader,
  hashConsensusHeader,
} from "../../../chain/consensus/consensus-header.js";
import { hashEvidenceList } from "../../../chain/consensus/evidence.js";
import { type LightBlock, LightError } from "../../../chain/consensus/light.js";
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { errorCode } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import { verifyCommit } from "../../blocks/commit-verification.js";
import { fromAny, type LightClient } from "./light-client.js";
import type { BlockExtras } from "./light-json.js";
import type { LightProvider } from "./light-rpc.js";
import { followingSet } from "./light-validators.js";
import { StateSyncError } from "../state-sync-error.js";
import type { ProvenHeight } from "../statesync-ports.js";

/**
 * What is proven of a height. The two heights above must exist: they prove what the height did, and
 * who decides next.
 * @throws as the light client; LIGHT_INVALID, SERVER_UNAVAILABLE, SERVER_ANSWER_INVALID
 */
export async function proveState(
  height: Height,
  parts: { readonly providers: readonly LightProvider[]; readonly light: LightClient },
  signal: AbortSignal,
): Promise<ProvenHeight> {
  const { light, providers } = parts;
  // The highest first: where hashes lead down to it from far above, each of the others is one step below.
  const afterNext = await light.verify(height + 2, signal);
  const next = await light.verify(height + 1, signal);
  const block = await light.verify(height, signal);
  const before = height === 1 ? undefined : await light.verify(height - 1, signal);
  const first = proposerSet(before, block);
  const second = followingSet(first, next.validators);
  const { blockId } = block.commit;
  if (blockId === undefined) throw new RangeError("a verified commit is for a block");
  if (next.header.lastBlockId?.hash !== blockId.hash) throw notOneChain(height);
  const extras = await fromAny(
    providers,
    async (provider) => {
      return checkedExtras(provider, { block, before }, await provider.blockExtras(height, signal));
    },
    signal,
  );
  return {
    header: block.header,
    blockId: next.header.lastBlockId,
    lastCommit: extras.lastCommit,
    evidence: extras.evidence,
    commit: await decidedCommit(block, next, { providers, signal }),
    next: next.header,
    validators: first,
    nextValidators: second,
    afterNextValidators: followingSet(second, afterNext.validators),
  };
}

/** The set of a height with its proposer: by the set before it, where there is one. */
function proposerSet(before: LightBlock | undefined, { validators }: LightBlock): ValidatorSet {
  return before === undefined ? validators : followingSet(before.validators, validators);
}

/**
 * The commit that the next header names. A height that was the newest when it was asked for came
 * with the signatures that the server had seen by then; of those only two thirds were verified.
 */
async function decidedCommit(
  { header, commit, validators }: LightBlock,
  next: LightBlock,
  {
    providers,
    signal,
  }: { readonly providers: readonly LightProvider[]; readonly signal: AbortSignal },
): Promise<Commit> {
  const { lastCommitHash, lastBlockId } = next.header;
  if (hashCommit(commit) === lastCommitHash) return commit;
  const ask = async (provider: LightProvider) => {
    const { commit: found } = await provider.lightBlock(header.height, signal);
    const isNamed = hashCommit(found) === lastCommitHash;
    if (isNamed && isSigned(found, { header, blockId: lastBlockId, validators })) return found;
    throw notDecided(provider, header.height);
  };
  return fromAny(providers, ask, signal);
}

/**
 * Whether validators signed a commit as it stands. A header's hash of it covers signatures alone: with
 * another round beside them this node's block would have other bytes than the one that was decided.
 */
function isSigned(
  commit: Commit,
  of: {
    readonly header: ConsensusHeader;
    readonly blockId: BlockId | undefined;
    readonly validators: ValidatorSet;
  },
): boolean {
  const { header, blockId, validators } = of;
  const { chainId, height } = header;
  if (blockId === undefined) return false;
  try {
    verifyCommit(commit, { chainId, height, blockId, validators });
    return true;
  } catch (error) {
    if (errorCode(error) !== "BLOCK_INVALID") throw error;
    return false;
  }
}

/** Commit and evidence that the proven header names. Throws SERVER_ANSWER_INVALID. */
function checkedExtras(
  provider: LightProvider,
  { block, before }: { readonly block: LightBlock; readonly before: LightBlock | undefined },
  extras: BlockExtras,
): BlockExtras {
  const { header } = block;
  const lastCommit = before === undefined ? EMPTY_COMMIT : extras.lastCommit;
  const isOwn =
    hashConsensusHeader(extras.header) === hashConsensusHeader(header) &&
    hashCommit(lastCommit) === header.lastCommitHash &&
    hashEvidenceList(extras.evidence) === header.evidenceHash &&
    (before === undefined || isSigned(lastCommit, { ...before, blockId: header.lastBlockId }));
  if (isOwn) return { ...extras, lastCommit };
  throw notDecided(provider, header.height);
}

function notDecided({ name }: LightProvider, height: Height): StateSyncError {
  return new StateSyncError(
    "SERVER_ANSWER_INVALID",
    `server ${name}: block ${height} is not the one that was decided`,
    { details: { server: name, height } },
  );
}

function notOneChain(height: Height): LightError {
  return new LightError("LIGHT_INVALID", "two verified headers are not of one chain", {
    details: { height },
  });
}
