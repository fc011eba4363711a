/** Events as subscribers get them: CometBFT's kinds, each with its data and searchable values. */
import {
  blockEvents,
  type ExecutedTransaction,
  executedTransactions,
  transactionCountOf,
} from "../../../../chain/abci-event.js";
import { hexToBytes, type Height } from "../../../../chain/hex.js";
import type { Vote } from "../../../../chain/consensus/vote.js";
import { validatorAddress } from "../../../../chain/consensus/validator-set.js";
import type { ConsensusMoment } from "../../../consensus/consensus-ports.js";
import { doBreathing } from "../../../../runtime/process/main-thread.js";
import { ownerOf } from "../../../../runtime/process/work-owner.js";
import type { CommittedBlock } from "../../../view/event-bus.js";
import { blockResult, bytesOf, needOutline } from "../chain-reads.js";
import {
  base64,
  blockIdJson,
  evidenceJson,
  headerJson,
  upperHex,
  validatorJson,
  voteJson,
} from "./encode.js";
import { transactionValueSteps } from "../search/event-search.js";
import type { CometChain } from "../ports.js";
import { type EventValues, eventValues } from "../search/query-match.js";
import { JsonPieces } from "./json-pieces.js";
import type { ResultTexts } from "./result-texts.js";
import { resultTextSteps, validatorUpdateJson, validatorUpdates } from "./results.js";

/** One event; its parts are made only when somebody wants them. */
export interface PublishedEvent {
  /** What `tm.event` is compared with. */
  readonly kind: string;
  values(): EventValues | Promise<EventValues>;
  /** JSON text of `{type, value}`, in pieces where it may be long. */
  data(): JsonPieces | Promise<JsonPieces>;
}

/** Kinds of `blockPublications`; all others are of moments. */
export const BLOCK_KINDS: ReadonlySet<string> = new Set([
  "NewBlock",
  "NewBlockHeader",
  "NewBlockEvents",
  "NewEvidence",
  "Tx",
  "ValidatorSetUpdates",
]);

/** Events of a committed height, in CometBFT's order. @param signal ends the making of what is asked for */
export function* blockPublications(
  chain: CometChain,
  texts: ResultTexts,
  committed: CommittedBlock,
  signal?: AbortSignal,
): Generator<PublishedEvent> {
  const { height } = committed.block.header;
  const events = blockEvents(committed.journal);
  const plain = (kind: string, data: () => unknown) => plainEvent(kind, kind, data);
  const updates = validatorUpdates(chain.consensus, height);
  yield {
    kind: "NewBlock",
    values: () => eventValues(events, { "tm.event": "NewBlock" }),
    data: () => newBlockText(chain, texts, committed, signal),
  };
  yield plain("NewBlockHeader", () => ({
    header: headerJson(needOutline(chain, height).header),
  }));
  yield {
    kind: "NewBlockEvents",
    values: () => eventValues(events, { "tm.event": "NewBlockEvents" }),
    data: () => {
      const num_txs = transactionCountOf(committed).toString();
      return typed("NewBlockEvents", { height: height.toString(), events, num_txs });
    },
  };
  for (const evidence of needOutline(chain, height).evidence) {
    const value = { height: height.toString(), evidence: evidenceJson(evidence) };
    yield plain("NewEvidence", () => value);
  }
  for (const executed of executedTransactions(committed)) {
    yield newTransaction(height, executed, signal);
  }
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
  signal: AbortSignal | undefined,
): Promise<JsonPieces> {
  const { height } = committed.block.header;
  const results = await texts.of(height, ownerOf(signal));
  const updates = validatorUpdates(chain.consensus, height);
  const block = [...(await blockResult(chain, height, signal)).pieces];
  const blockEnd = (block.pop() ?? "").toString().slice(0, -1);
  const rest = JSON.stringify({
    events: blockEvents(committed.journal),
    validator_updates: updates.map(validatorUpdateJson),
    app_hash: base64(hexToBytes(committed.block.hash)),
  });
  return new JsonPieces([
    '{"type":"tendermint/event/NewBlock","value":',
    ...block,
    `${blockEnd},"result_finalize_block":{"tx_results":`,
    ...results.pieces,
    `,${rest.slice(1)}}}`,
  ]);
}

function newTransaction(
  at: Height,
  executed: ExecutedTransaction,
  signal: AbortSignal | undefined,
): PublishedEvent {
  return {
    kind: "Tx",
    values: () => doBreathing(transactionValueSteps(at, executed), signal),
    data: async () => {
      const { index } = executed;
      const place = JSON.stringify({ height: at.toString(), index, tx: base64(bytesOf(executed)) });
      const result = await doBreathing(resultTextSteps(executed), signal);
      return new JsonPieces([
        `{"type":"tendermint/event/Tx","value":{"TxResult":${place.slice(0, -1)},"result":`,
        ...result,
        "}}}",
      ]);
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
  const { address } = chain.consensus.progress().validators.proposer;
  const index = chain.consensus.validators(height)?.indexOf(address) ?? -1;
  return { address: upperHex(address), index };
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

function typed(kind: string, value: unknown): JsonPieces {
  return new JsonPieces([JSON.stringify({ type: `tendermint/event/${kind}`, value })]);
}
