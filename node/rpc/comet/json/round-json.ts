/**
 * The height in progress as CometBFT prints it: `RoundStateSimple` for `consensus_state`,
 * `RoundState` and each peer's `PeerState` for `dump_consensus_state`. Votes are texts with bit
 * arrays of the power behind them.
 */
import {
  type BlockId,
  formatTime,
  msToNs,
  ZERO_TIME_NS,
} from "../../../../chain/consensus/block-id.js";
import type { ValidatorSet } from "../../../../chain/consensus/validator-set.js";
import { type Proposal, type Vote, VOTE_TYPE } from "../../../../chain/consensus/vote.js";
import type {
  HeightProgress,
  ProgressBlock,
  VoteList,
} from "../../../consensus/consensus-ports.js";
import type { NetworkPeer } from "../../../p2p/network-port.js";
import { base64, blockIdJson, blockJson, upperHex, upperHexOf, validatorJson } from "./encode.js";
import type { JsonPieces } from "./json-pieces.js";
import { pagesOf, transactionPieces, withTransactions } from "./transaction-pieces.js";

/** Names of votes' types, as protobuf's enumeration and CometBFT's texts have them. */
const TYPE_NAMES = {
  [VOTE_TYPE.prevote]: "SIGNED_MSG_TYPE_PREVOTE(Prevote)",
  [VOTE_TYPE.precommit]: "SIGNED_MSG_TYPE_PRECOMMIT(Precommit)",
} as const;

/** `SIGNED_MSG_TYPE_PROPOSAL`. */
const PROPOSAL_TYPE = 32;

/** Bytes that CometBFT shows of hashes and signatures in texts. */
const FINGERPRINT_BYTES = 6;

/** `round_state` of `consensus_state`. */
export function simpleRoundJson(progress: HeightProgress) {
  const { height, round, step, validators } = progress;
  const { address } = validators.proposer;
  return {
    "height/round/step": `${height}/${round}/${step}`,
    start_time: timeText(progress.startTimeMs),
    proposal_block_hash: hashOf(progress.proposalBlock),
    locked_block_hash: hashOf(progress.lockedBlock),
    valid_block_hash: hashOf(progress.validBlock),
    height_vote_set: votesJson(progress),
    proposer: { address: upperHex(address), index: validators.indexOf(address) },
  };
}

/**
 * `dump_consensus_state`. The blocks' transactions are encoded a page at a time, so that full blocks delay
 * nobody, and once where the proposed block is the locked or the valid one, too.
 */
export async function fullRoundText(
  progress: HeightProgress,
  peers: readonly NetworkPeer[],
  signal?: AbortSignal,
): Promise<JsonPieces> {
  const state = { round_state: fullRoundJson(progress), peers: peers.map(peerStateJson) };
  const text = JSON.stringify(state);
  const known = new Map<string, readonly Buffer[]>();
  const ofBlocks: (readonly Buffer[])[] = [];
  const { proposalBlock, lockedBlock, validBlock } = progress;
  // In the order of the text.
  for (const shown of [proposalBlock, lockedBlock, validBlock]) {
    if (shown?.block === undefined) continue;
    const { id, block } = shown;
    const pieces =
      known.get(id.hash) ?? (await transactionPieces(pagesOf(block.transactions), signal));
    known.set(id.hash, pieces);
    ofBlocks.push(pieces);
  }
  return withTransactions(text, ofBlocks);
}

/** `round_state` with blocks that have no transactions. */
function fullRoundJson(progress: HeightProgress) {
  const { proposal, proposalBlock, lockedBlock, validBlock, commitTimeMs } = progress;
  const { lastCommit, lastValidators } = progress;
  return {
    height: progress.height.toString(),
    round: progress.round,
    step: progress.step,
    start_time: timeText(progress.startTimeMs),
    commit_time: commitTimeMs === undefined ? formatTime(ZERO_TIME_NS) : timeText(commitTimeMs),
    validators: setJson(progress.validators),
    proposal: proposal === undefined ? null : proposalJson(proposal),
    proposal_block: emptyBlock(proposalBlock),
    proposal_block_parts: partsJson(proposalBlock),
    locked_round: progress.lockedRound,
    locked_block: emptyBlock(lockedBlock),
    locked_block_parts: partsJson(lockedBlock),
    valid_round: progress.validRound,
    valid_block: emptyBlock(validBlock),
    valid_block_parts: partsJson(validBlock),
    votes: votesJson(progress),
    commit_round: progress.commitRound,
    last_commit:
      lastCommit === undefined || lastValidators === undefined
        ? null
        : {
            votes: lastCommit.map(voteText),
            votes_bit_array: powerText(lastCommit, lastValidators),
            peer_maj_23s: {},
          },
    last_validators: setJson(lastValidators),
    triggered_timeout_precommit: progress.isPrecommitTimeoutSet,
  };
}

/** One peer of `dump_consensus_state`; what it does not tell is as CometBFT shows the unknown. */
export function peerStateJson({ nodeId, listenAddress, round }: NetworkPeer) {
  return {
    node_address: `${nodeId}@${listenAddress.replace(/^tcp:\/\//, "")}`,
    peer_state: {
      round_state: peerRoundJson(round),
      stats: { votes: round.voteCount.toString(), block_parts: round.partCount.toString() },
    },
  };
}

function peerRoundJson({ status, sinceMs }: NetworkPeer["round"]) {
  const parts = status?.parts;
  return {
    height: (status?.height ?? 0).toString(),
    round: status?.round ?? -1,
    step: status?.step ?? 0,
    start_time: status === undefined ? formatTime(ZERO_TIME_NS) : timeText(sinceMs),
    proposal: status?.hasProposal ?? false,
    proposal_block_part_set_header: blockIdJson(
      parts === undefined ? undefined : { hash: parts.header.hash, parts: parts.header },
    ).parts,
    proposal_block_parts: parts === undefined ? null : bits(parts.have),
    proposal_pol_round: -1,
    proposal_pol: null,
    prevotes: status === undefined ? null : bits(status.prevotes),
    precommits: status === undefined ? null : bits(status.precommits),
    last_commit_round: -1,
    last_commit: null,
    catchup_commit_round: -1,
    catchup_commit: null,
  };
}

/** A part set by the block's id; a block whose parts are missing has none to show yet. */
function hashOf(block: ProgressBlock | undefined): string {
  return block?.block === undefined ? "" : upperHex(block.id.hash);
}

function emptyBlock(block: ProgressBlock | undefined) {
  return block?.block === undefined ? null : blockJson({ ...block.block, transactions: [] });
}

function partsJson(block: ProgressBlock | undefined) {
  if (block === undefined) return null;
  const { parts } = block;
  const count = parts.filter(Boolean).length;
  return { "count/total": `${count}/${parts.length}`, parts_bit_array: bits(parts) };
}

function proposalJson(proposal: Proposal) {
  return {
    Type: PROPOSAL_TYPE,
    height: proposal.height.toString(),
    round: proposal.round,
    pol_round: proposal.polRound,
    block_id: blockIdJson(proposal.blockId),
    timestamp: formatTime(proposal.timeNs),
    signature: base64(proposal.signature),
  };
}

/** Before the first block there are no last validators: CometBFT's empty set. */
function setJson(set: ValidatorSet | undefined) {
  if (set === undefined) return { validators: null, proposer: null };
  return { validators: set.validators.map(validatorJson), proposer: validatorJson(set.proposer) };
}

function votesJson({ votes, validators }: HeightProgress) {
  return votes.map(({ round, prevotes, precommits }) => ({
    round,
    prevotes: prevotes.map(voteText),
    prevotes_bit_array: powerText(prevotes, validators),
    precommits: precommits.map(voteText),
    precommits_bit_array: powerText(precommits, validators),
  }));
}

/** `Vote{0:AABB.. 7/01/SIGNED_MSG_TYPE_PREVOTE(Prevote) hash signature extension @ time}`. */
function voteText(vote: Vote | undefined): string {
  if (vote === undefined) return "nil-Vote";
  const { validatorIndex, validatorAddress, height, round, type, blockId, signature } = vote;
  const place = `${height}/${round.toString().padStart(2, "0")}/${TYPE_NAMES[type]}`;
  const prints = [hashPrint(blockId), fingerprint(upperHexOf(signature)), fingerprint("")];
  const voter = `${validatorIndex}:${fingerprint(upperHex(validatorAddress))}`;
  return `Vote{${voter} ${place} ${prints.join(" ")} @ ${formatTime(vote.timeNs)}}`;
}

function hashPrint(blockId: BlockId | undefined): string {
  return fingerprint(blockId === undefined ? "" : upperHex(blockId.hash));
}

function fingerprint(upperDigits: string): string {
  return upperDigits.slice(0, 2 * FINGERPRINT_BYTES).padEnd(2 * FINGERPRINT_BYTES, "0");
}

/** `BA{4:xx__} 20/40 = 0.50`: who voted, and with how much of the power. */
function powerText(votes: VoteList, { validators, totalPower }: ValidatorSet): string {
  const have = validators.map((_, index) => votes[index] !== undefined);
  const voted = validators.reduce(
    (sum, { power }, index) => (have[index] === true ? sum + power : sum),
    0n,
  );
  const share = twoDecimals(Number(voted) / Number(totalPower));
  return `BA{${have.length}:${bits(have)}} ${voted}/${totalPower} = ${share}`;
}

/** As Go's `%.2f`: halves that a double holds exactly go to the even digit. */
function twoDecimals(share: number): string {
  const isHalf = Number.isInteger(share * 8) && !Number.isInteger(share * 4);
  if (!isHalf) return share.toFixed(2);
  const below = Math.floor(share * 100);
  return ((below + (below % 2)) / 100).toFixed(2);
}

function bits(have: readonly boolean[]): string {
  return have.map((one) => (one ? "x" : "_")).join("");
}

function timeText(timeMs: number): string {
  return formatTime(msToNs(timeMs));
}
