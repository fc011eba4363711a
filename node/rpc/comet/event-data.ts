/** Events as subscribers get them: CometBFT's kinds, each with its data and searchable values. */
import { hexToBytes, type Height } from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/sdk-transaction.js";
import type { Vote } from "../../../chain/consensus/vote.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import type { ConsensusMoment } from "../../consensus/consensus-ports.js";
import type { CommittedBlock } from "../../event-bus.js";
import { blockResult, needSummary } from "./chain-reads.js";
import {
  base64,
  blockIdJson,
  evidenceJson,
  headerJson,
  upperHex,
  validatorJson,
  voteJson,
} from "./encode.js";
import { transactionValues } from "./event-search.js";
import type { CometChain } from "./ports.js";
import { type EventValues, eventValues } from "./query-match.js";
import type { ResultTexts } from "./result-texts.js";
import {
  finalizeEvents,
  transactionResultJson,
  validatorUpdateJson,
  validatorUpdates,
} from "./results.js";

/** One event; its parts are made only when somebody wants them. */
export interface PublishedEvent {
  /** What `tm.event` is compared with. */
  readonly kind: string;
  values(): EventValues;
  /** JSON text of `{type, value}`. */
  data(): string | Promise<string>;
}

/** Events of a committed height, in CometBFT's order. */
export function* blockPublications(
  chain: CometChain,
  texts: ResultTexts,
  committed: CommittedBlock,
): Generator<PublishedEvent> {
  const { height } = committed.block.header;
  const events = finalizeEvents(committed);
  const plain = (kind: string, data: () => unknown) => plainEvent(kind, kind, data);
  const updates = validatorUpdates(chain.consensus, height);
  yield {
    kind: "NewBlock",
    values: () => eventValues(events, { "tm.event": "NewBlock" }),
    data: () => newBlockText(chain, texts, committed),
  };
  yield plain("NewBlockHeader", () => ({
    header: headerJson(needSummary(chain, height).header),
  }));
  yield {
    kind: "NewBlockEvents",
    values: () => eventValues(events, { "tm.event": "NewBlockEvents" }),
    data: () => {
      const num_txs = committed.block.transactions.length.toString();
      return typed("NewBlockEvents", { height: height.toString(), events, num_txs });
    },
  };
  for (const evidence of needSummary(chain, height).evidence) {
    const value = { height: height.toString(), evidence: evidenceJson(evidence) };
    yield plain("NewEvidence", () => value);
  }
  for (const index of committed.block.transactions.keys()) yield newTransaction(committed, index);
  if (updates.length > 0) {
    yield plain("ValidatorSetUpdates", () => ({
      validator_updates: updates.map(({ publicKey, power }) => {
        const address = validatorAddress(publicKey);
        return validatorJson({ address, publicKey, power, priority: 0n });
      }),
    }));
  }
}

async function newBlockText(
  chain: CometChain,
  texts: ResultTexts,
  committed: CommittedBlock,
): Promise<string> {
  const { height } = committed.block.header;
  const results = await texts.of(committed);
  const updates = validatorUpdates(chain.consensus, height);
  const block = JSON.stringify(blockResult(chain, height));
  const rest = JSON.stringify({
    events: finalizeEvents(committed),
    validator_updates: updates.map(validatorUpdateJson),
    app_hash: base64(hexToBytes(committed.block.hash)),
  });
  const finalized = `{"tx_results":${results},${rest.slice(1)}`;
  const value = `${block.slice(0, -1)},"result_finalize_block":${finalized}}`;
  return `{"type":"tendermint/event/NewBlock","value":${value}}`;
}

function newTransaction(committed: CommittedBlock, index: number): PublishedEvent {
  return {
    kind: "Tx",
    values: () => transactionValues(committed, index),
    data: () => {
      const mined = committed.block.transactions[index];
      if (mined === undefined) throw new RangeError("a block has no such transaction");
      const tx = base64(encodeSdkTransaction(mined.tx, mined.from));
      const height = committed.block.header.height.toString();
      const result = transactionResultJson(committed, index);
      return typed("Tx", { TxResult: { height, index, tx, result } });
    },
  };
}

/** Names of the steps in events, by their numbers. */
const STEP_NAMES = [
  "",
  "RoundStepNewHeight",
  "RoundStepNewRound",
  "RoundStepPropose",
  "RoundStepPrevote",
  "RoundStepPrevoteWait",
  "RoundStepPrecommit",
  "RoundStepPrecommitWait",
  "RoundStepCommit",
] as const;

/** The event of a moment inside a height. */
export function momentPublication(chain: CometChain, moment: ConsensusMoment): PublishedEvent {
  const { name, height, round, step } = moment;
  const place = { height: height.toString(), round, step: STEP_NAMES[step] };
  if (name === "NewRound") {
    // Read now: when it is sent the round may be another.
    const value = { ...place, proposer: proposerJson(chain, height) };
    return plainEvent(name, name, () => value);
  }
  if (name === "CompleteProposal") {
    const value = { ...place, block_id: blockIdJson(moment.blockId) };
    return plainEvent(name, name, () => value);
  }
  return plainEvent(name, "RoundState", () => place);
}

function proposerJson(chain: CometChain, height: Height) {
  const { proposer } = chain.consensus.progress();
  if (proposer === undefined) return { address: "", index: -1 };
  const index = chain.consensus.validators(height)?.indexOf(proposer) ?? -1;
  return { address: upperHex(proposer), index };
}

/** The event of a vote that this node saw. */
export function votePublication(vote: Vote): PublishedEvent {
  return plainEvent("Vote", "Vote", () => ({ Vote: voteJson(vote) }));
}

/** An event that has nothing but its kind to be found by. */
function plainEvent(kind: string, type: string, data: () => unknown): PublishedEvent {
  return {
    kind,
    values: () => new Map([["tm.event", [kind]]]),
    data: () => typed(type, data()),
  };
}

function typed(kind: string, value: unknown): string {
  return JSON.stringify({ type: `tendermint/event/${kind}`, value });
}
