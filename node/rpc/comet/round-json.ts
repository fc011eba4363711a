/**
 * The height in progress as CometBFT prints it: votes as bit arrays with their power. What this
 * node does not tell of a round (locks, the blocks themselves) is left out, not made up.
 */
import { formatTime, msToNs } from "../../../chain/consensus/block-id.js";
import type { Validator, ValidatorSet } from "../../../chain/consensus/validator-set.js";
import type { Height } from "../../../chain/hex.js";
import { upperHex, validatorJson } from "./encode.js";
import type { CometChain, CometPeer } from "./ports.js";

interface RoundVotes {
  readonly round: number;
  readonly prevotes: readonly boolean[];
  readonly precommits: readonly boolean[];
}

/** `round_state` of `consensus_state`. */
export function simpleRoundJson(chain: CometChain) {
  const { status, proposer } = chain.consensus.progress();
  const { height, round, step } = status;
  const validators = chain.consensus.validators(height);
  return {
    "height/round/step": `${height}/${round}/${step}`,
    start_time: startTime(chain),
    height_vote_set: voteSets(chain),
    proposer: {
      address: proposer === undefined ? "" : upperHex(proposer),
      index: proposer === undefined ? -1 : (validators?.indexOf(proposer) ?? -1),
    },
  };
}

/** `round_state` of `dump_consensus_state`. */
export function fullRoundJson(chain: CometChain) {
  const { status, proposer } = chain.consensus.progress();
  const { height, round, step, parts, hasProposal } = status;
  const list = chain.consensus.validators(height)?.validators ?? [];
  const turn = list.find(({ address }) => address === proposer);
  return {
    height: height.toString(),
    round,
    step,
    start_time: startTime(chain),
    validators: {
      validators: list.map(validatorJson),
      proposer: turn === undefined ? null : validatorJson(turn),
    },
    has_proposal: hasProposal,
    proposal_block_parts:
      parts === undefined
        ? null
        : {
            "count/total": `${parts.have.filter(Boolean).length}/${parts.header.total}`,
            parts_bit_array: bitArray(parts.have),
          },
    votes: voteSets(chain),
  };
}

/** One peer of `dump_consensus_state`; what it knows of the round stays with the network. */
export function peerStateJson({ nodeId, listenAddress }: CometPeer) {
  return { node_address: `${nodeId}@${listenAddress.replace(/^tcp:\/\//, "")}`, peer_state: {} };
}

/** The height in progress began when the last block was committed. */
function startTime({ view }: CometChain): string {
  return formatTime(msToNs(view.head().timeMs));
}

function voteSets({ consensus }: CometChain) {
  const { status } = consensus.progress();
  const validators = consensus.validators(status.height);
  const { height, round, prevotes, precommits, earlier } = status;
  const rounds: RoundVotes[] = [...earlier, { round, prevotes, precommits }];
  return rounds
    .toSorted((left, right) => left.round - right.round)
    .map((votes) => roundJson(votes, height, validators));
}

function roundJson(votes: RoundVotes, height: Height, validators: ValidatorSet | undefined) {
  const { round, prevotes, precommits } = votes;
  const list = validators?.validators ?? [];
  const total = validators?.totalPower ?? 0n;
  const texts = (have: readonly boolean[], type: string) =>
    list.map(({ address }, index) => {
      if (have[index] !== true) return "nil-Vote";
      const place = `${height}/${round.toString().padStart(2, "0")}`;
      return `Vote{${index}:${upperHex(address).slice(0, 12)} ${place}/${type}}`;
    });
  return {
    round,
    prevotes: texts(prevotes, "SIGNED_MSG_TYPE_PREVOTE(Prevote)"),
    prevotes_bit_array: powerText(prevotes, list, total),
    precommits: texts(precommits, "SIGNED_MSG_TYPE_PRECOMMIT(Precommit)"),
    precommits_bit_array: powerText(precommits, list, total),
  };
}

/** `BA{4:xx__} 20/40 = 0.50`: who voted, and with how much of the power. */
function powerText(have: readonly boolean[], list: readonly Validator[], total: bigint): string {
  const voted = list.reduce((sum, { power }, at) => (have[at] === true ? sum + power : sum), 0n);
  const hundredths = total === 0n ? 0n : (voted * 100n + total / 2n) / total;
  const share = `${hundredths / 100n}.${(hundredths % 100n).toString().padStart(2, "0")}`;
  return `${bitArray(list.map((_, index) => have[index] === true))} ${voted}/${total} = ${share}`;
}

function bitArray(have: readonly boolean[]): string {
  return `BA{${have.length}:${have.map((one) => (one ? "x" : "_")).join("")}}`;
}
