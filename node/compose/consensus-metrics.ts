/** Metrics of consensus and validators, with CometBFT's names and meanings. */
import { COMMIT_FLAG } from "../../chain/consensus/commit.js";
import type { Address } from "../../chain/address.js";
import type { ValidatorSet } from "../../chain/consensus/validator-set.js";
import { VOTE_TYPE } from "../../chain/consensus/vote.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { ConsensusReport } from "../consensus/consensus-ports.js";

/** Consensus as these metrics hear of it. */
export interface ConsensusReports {
  onReport(listener: (report: ConsensusReport) => void): () => void;
  /** Address of this node's key; undefined for a node without one. */
  ownAddress(): Address | undefined;
}

/** Seconds; CometBFT's buckets. */
const METHOD_BUCKETS_SECONDS = [0.0001, 0.0004, 0.002, 0.009, 0.02, 0.1, 0.65, 2, 6, 25];

/** Milliseconds, as CometBFT has it against its own rule; its buckets, and a block's budget. */
const PROCESSING_BUCKETS_MS = [1, 11, 21, 31, 41, 51, 61, 71, 81, 91, 250, 500, 1_000];

type Decided = Extract<ConsensusReport, { readonly type: "decided" }>;

/** Registers them; they follow what consensus reports from now on. */
export function registerConsensusMetrics(metrics: Metrics, consensus: ConsensusReports): void {
  const onDecided = blockMetrics(metrics, consensus.ownAddress());
  const proposals = metrics.counter(
    "cometbft_consensus_proposal_receive_count",
    "Proposals received since the start, by whether their block is valid.",
    ["status"],
  );
  for (const status of ["accepted", "rejected"]) proposals.inc({ status }, 0);
  const late = metrics.counter(
    "cometbft_consensus_late_votes",
    "Votes received for a height or round that is over.",
    ["vote_type"],
  );
  for (const type of Object.values(VOTE_TYPE)) late.inc({ vote_type: voteName(type) }, 0);
  const onTiming = timingMetrics(metrics);
  consensus.onReport((report) => {
    switch (report.type) {
      case "decided":
        return onDecided(report);
      case "proposal":
        return proposals.inc({ status: report.isAccepted ? "accepted" : "rejected" });
      case "late vote":
        return late.inc({ vote_type: voteName(report.voteType) });
      case "timing":
        return onTiming(report);
    }
  });
}

function voteName(type: (typeof VOTE_TYPE)[keyof typeof VOTE_TYPE]): string {
  return type === VOTE_TYPE.prevote ? "prevote" : "precommit";
}

function timingMetrics(metrics: Metrics) {
  const methods = metrics.histogram(
    "cometbft_abci_connection_method_timing_seconds",
    "Time to build a block, to execute a proposed one, and to write a decided one.",
    ["method", "type"],
    METHOD_BUCKETS_SECONDS,
  );
  const processing = metrics.histogram(
    "cometbft_state_block_processing_time",
    "Time to execute a block, milliseconds.",
    [],
    PROCESSING_BUCKETS_MS,
  );
  return ({ method, durationMs }: Extract<ConsensusReport, { readonly type: "timing" }>) => {
    methods.observe({ method, type: "sync" }, durationMs / 1_000);
    // Every block is executed once, by whoever proposes it and by all others before they vote.
    if (method !== "commit") processing.observe(durationMs);
  };
}

/** What a decided block says about validators; the signatures are those of the block before. */
function blockMetrics(metrics: Metrics, own: Address | undefined): (report: Decided) => void {
  const gauge = (name: string, help: string) => metrics.gauge(`cometbft_consensus_${name}`, help);
  const size = gauge("block_size_bytes", "Size of the last block.");
  const chain = metrics.counter(
    "cometbft_consensus_chain_size_bytes",
    "Of blocks since the start.",
  );
  const missing = gauge("missing_validators", "Validators who did not sign the block before.");
  const missingPower = gauge("missing_validators_power", "Their power together.");
  const byzantine = gauge("byzantine_validators", "Double signers whom the last block names.");
  const byzantinePower = gauge("byzantine_validators_power", "Their power together.");
  const onOwn = own === undefined ? undefined : ownMetrics(metrics, own);
  return ({ block, sizeBytes, validators, lastValidators }) => {
    size.set(sizeBytes);
    chain.inc(sizeBytes);
    const absent = (lastValidators?.validators ?? []).filter((_, index) => {
      return block.lastCommit.signatures[index]?.flag === COMMIT_FLAG.absent;
    });
    missing.set(absent.length);
    missingPower.set(powerOf(absent));
    const liars = block.evidence.flatMap(({ voteA }) => {
      return validators.at(validators.indexOf(voteA.validatorAddress)) ?? [];
    });
    byzantine.set(liars.length);
    byzantinePower.set(powerOf(liars));
    onOwn?.(block, lastValidators);
  };
}

/** Of this node's key, while it is a validator. */
function ownMetrics(metrics: Metrics, own: Address) {
  const labels = ["validator_address"] as const;
  const label = { validator_address: own.slice(2).toUpperCase() };
  const gauge = (name: string, help: string) =>
    metrics.gauge(`cometbft_consensus_${name}`, help, labels);
  const power = gauge("validator_power", "Power of this node's key.");
  const signed = gauge(
    "validator_last_signed_height",
    "Last block with a signature of the block before by this node's key.",
  );
  const missed = gauge("validator_missed_blocks", "Blocks without that since the start.");
  return ({ header, lastCommit }: Decided["block"], validators: ValidatorSet | undefined) => {
    const index = validators?.indexOf(own) ?? -1;
    const validator = validators?.at(index);
    if (validator === undefined) return;
    power.set(label, Number(validator.power));
    const isSigned = lastCommit.signatures[index]?.flag === COMMIT_FLAG.commit;
    if (isSigned) signed.set(label, header.height);
    missed.inc(label, isSigned ? 0 : 1);
  };
}

function powerOf(validators: readonly { readonly power: bigint }[]): number {
  return Number(validators.reduce((sum, { power }) => sum + power, 0n));
}
