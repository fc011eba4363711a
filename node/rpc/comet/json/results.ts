/** What execution did with a block's transactions, and the block's events, as ABCI has them. */
import {
  type ExecutedTransaction,
  failureOf,
  isEvmExecuted,
  transactionEvents,
} from "../../../../chain/abci-event.js";
import type { AbciEvent } from "../../../../chain/consensus/abci-types.js";
import { executionResult } from "../../../../chain/consensus/execution-result.js";
import type { Validator } from "../../../../chain/consensus/validator-set.js";
import type { ValidatorUpdate } from "../../../../chain/consensus/validator-set.js";
import type { Height } from "../../../../chain/hex.js";
import { base64 } from "./encode.js";
import type { CometConsensus } from "../ports.js";

/** `ExecTxResult` of a mined transaction. */
export function transactionResultJson(executed: ExecutedTransaction) {
  if (!isEvmExecuted(executed)) {
    return resultJson({ ...executed.result, gasWanted: executed.tx.gasLimit });
  }
  const { code, gasWanted, gasUsed } = executionResult(executed.tx, executed.receipt);
  return resultJson({
    code,
    log: failureOf(executed) ?? "",
    gasWanted,
    gasUsed,
    events: transactionEvents(executed),
    codespace: code === 0 ? "" : "evm",
  });
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
