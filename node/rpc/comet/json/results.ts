/** What execution did with a block's transactions, and the block's events, as ABCI has them. */
import {
  type ExecutedTransaction,
  failureOf,
  isEvmExecuted,
  transactionEventSteps,
} from "../../../../chain/abci-event.js";
import type { AbciEvent } from "../../../../chain/consensus/abci-types.js";
import { executionResult } from "../../../../chain/consensus/execution-result.js";
import type { Validator } from "../../../../chain/consensus/validator-set.js";
import type { ValidatorUpdate } from "../../../../chain/consensus/validator-set.js";
import type { Height } from "../../../../chain/hex.js";
import type { Steps } from "../../../../chain/steps/steps.js";
import { base64 } from "./encode.js";
import type { CometConsensus } from "../ports.js";

/** `ExecTxResult` of a mined transaction, in steps: it may have tens of thousands of logs. */
export function* transactionResultSteps(executed: ExecutedTransaction): Steps<ResultJson> {
  if (!isEvmExecuted(executed)) {
    return resultJson({ ...executed.result, gasWanted: executed.tx.gasLimit });
  }
  const { code, gasWanted, gasUsed } = executionResult(executed.tx, executed.receipt);
  return resultJson({
    code,
    log: failureOf(executed) ?? "",
    gasWanted,
    gasUsed,
    events: yield* transactionEventSteps(executed),
    codespace: code === 0 ? "" : "evm",
  });
}

/** Attributes of an event that are written at a stretch. */
const ATTRIBUTES_AT_ONCE = 64;

/** Where the events stand in the text of a result without any. */
const NO_EVENTS = '"events":[]';

/** `ExecTxResult` as JSON text in pieces, in steps. */
export function* resultTextSteps(executed: ExecutedTransaction): Steps<string[]> {
  const result = yield* transactionResultSteps(executed);
  const text = JSON.stringify({ ...result, events: [] });
  const end = text.lastIndexOf(NO_EVENTS) + NO_EVENTS.length - 1;
  const pieces = [text.slice(0, end)];
  for (const [place, { type, attributes }] of result.events.entries()) {
    pieces.push(`${place === 0 ? "" : ","}{"type":${JSON.stringify(type)},"attributes":[`);
    for (let from = 0; from < attributes.length; from += ATTRIBUTES_AT_ONCE) {
      const some = JSON.stringify(attributes.slice(from, from + ATTRIBUTES_AT_ONCE));
      pieces.push(`${from === 0 ? "" : ","}${some.slice(1, -1)}`);
      yield;
    }
    pieces.push("]}");
  }
  pieces.push(text.slice(end));
  return pieces;
}

/** Fields of `ExecTxResult` and `ResponseCheckTx`, which have the same form. */
export interface AbciResult {
  readonly code: number;
  readonly log: string;
  /** Absent where there is none. */
  readonly data?: Uint8Array;
  readonly gasWanted: bigint;
  readonly gasUsed: bigint;
  readonly events: readonly AbciEvent[];
  readonly codespace: string;
}

/** An ABCI result as JSON. */
export type ResultJson = ReturnType<typeof resultJson>;

/** An ABCI result. */
export function resultJson(result: AbciResult) {
  return {
    code: result.code,
    data: result.data === undefined || result.data.length === 0 ? null : base64(result.data),
    log: result.log,
    info: "",
    gas_wanted: result.gasWanted.toString(),
    gas_used: result.gasUsed.toString(),
    events: result.events,
    codespace: result.codespace,
  };
}

/** Changes of the validators that a height decided: they take effect at the height + 2. */
export function validatorUpdates(consensus: CometConsensus, height: Height): ValidatorUpdate[] {
  const before = consensus.validators(height + 1)?.validators;
  const after = consensus.validators(height + 2)?.validators;
  if (before === undefined || after === undefined) return [];
  const powers = new Map(before.map(({ address, power }) => [address, power]));
  const changed = after.filter(({ address, power }) => powers.get(address) !== power);
  const left = new Set(after.map(({ address }) => address));
  const removed = before.filter(({ address }) => !left.has(address));
  const update = (one: Validator, power: bigint) => ({ publicKey: one.publicKey, power });
  return [
    ...changed.map((one) => update(one, one.power)),
    ...removed.map((one) => update(one, 0n)),
  ];
}

/** `validator_updates`; Go's JSON leaves a power of zero out. */
export function validatorUpdateJson({ publicKey, power }: ValidatorUpdate) {
  const value = { ed25519: base64(publicKey) };
  return {
    pub_key: { Sum: { type: "tendermint.crypto.PublicKey_Ed25519", value } },
    ...(power === 0n ? {} : { power: power.toString() }),
  };
}
