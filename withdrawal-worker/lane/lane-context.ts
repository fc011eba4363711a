/** What all steps of a lane share: the wallet, its lease, the node, the settings. */
import type { FailureRules } from "../../ledger/withdrawals/slot-outcomes.js";
import type { WalletLease } from "../../ledger/wallets/wallet-lease.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { GasSettings } from "../gas.js";
import type { LaneGuard } from "./lane-guard.js";
import type { LaneLedger } from "./lane-ledger.js";
import type { KillSwitchState } from "../../ledger/kill-switch/kill-switch-level.js";
import type { HashedPolicy } from "../../ledger/policy/policy.js";
import type { Signer } from "../signers/signer-port.js";
import type { Screener } from "./slots/screening.js";
import type { LeftToOthers } from "./slots/waiting.js";
import type { SignerAnswers } from "./attempts/signer-answers.js";
import type { StallSettings } from "./attempts/stalled-slot.js";
import type { SecondNode, WalletNode, WalletView } from "./wallet-node.js";

/** Settings of a lane. */
export interface LaneSettings {
  /** Rows per SQL round trip and calls per JSON-RPC batch, 1-500. */
  readonly batchSize: number;
  /** Open slots at once; this chain's pool takes 8,192 executable ones a sender. */
  readonly maxLiveSlots: number;
  /** Longest wait between two looks at the tables: what a lost wake-up costs. */
  readonly scanIntervalMs: number;
  /** Wait between two looks at the chain while something is on its way. */
  readonly pollIntervalMs: number;
  /** Time after which bytes that the node's pool does not show are sent again. */
  readonly rebroadcastIntervalMs: number;
  /** Wait before a request is tried again that could not be estimated or covered. */
  readonly retryDelayMs: number;
  /** How long receipts of a consumed nonce may be missing before the wallet freezes. */
  readonly receiptPatienceMs: number;
  /** How long a silent worker keeps its lease. */
  readonly leaseMs: number;
  readonly gas: GasSettings;
  readonly stall: StallSettings;
  readonly failures: FailureSettings;
}

/** What payouts that fail on the chain lead to. */
export interface FailureSettings extends FailureRules {
  /** So many in the window, and payouts of the customer to code are rejected; 0 never rejects. */
  readonly maxCount: number;
  readonly windowMs: number;
}

/** The policy in force. */
export interface PolicySource {
  /** @throws POLICY_UNREADABLE; database faults */
  current(): Promise<HashedPolicy>;
}

/** The kill switch: what the home and the ledger say, the stricter of the two. */
export interface KillSwitch {
  /** Never looser for a file that cannot be read. @throws database faults */
  read(): Promise<KillSwitchState>;
}

/** Parts a lane is made of. */
export interface LaneContext {
  readonly ledger: LaneLedger;
  /** Asked in each round before anything is given a nonce, signed or sent. */
  readonly guard: LaneGuard;
  readonly node: WalletNode;
  /** Another node, which must show the same receipts before anything is settled. */
  readonly secondNode?: SecondNode | undefined;
  /** Of this lane's wallet; without a key here it knows the address alone. */
  readonly signer: Signer;
  /** False while no keystore of this home opens the wallet: then nothing is signed here. */
  readonly hasKey: () => boolean;
  readonly policy: PolicySource;
  readonly killSwitch: KillSwitch;
  /** Asks about withdrawals where the policy wants it. */
  readonly screener: Screener;
  readonly chainId: bigint;
  readonly settings: LaneSettings;
  readonly clock: Clock;
  readonly log: Logger;
}

/** One round of work: the lease it is done under and the chain as it was read for it. */
export interface Round {
  readonly lease: WalletLease;
  readonly view: WalletView;
  /** When the chain was asked for it, monotonic: what it shows was so then, however late it is now. */
  readonly askedMs: number;
  /** Losses of blocks that the watcher had gone back for, read behind the view. */
  readonly rewinds: number;
  /** Requests that the lane leaves to other wallets for now. */
  readonly left: LeftToOthers;
  /** What who signs has answered so far. */
  readonly answers: SignerAnswers;
  /** Balances of tokens at the view's height, by asset, where a step has read them. */
  readonly tokenUnits?: ReadonlyMap<string, bigint>;
  readonly signal: AbortSignal;
}

/** The settings of gas, within what the node takes of one transaction. */
export function gasOf({ settings }: LaneContext, { view }: Pick<Round, "view">): GasSettings {
  const { maxTransactionGas } = view;
  const { gas } = settings;
  if (maxTransactionGas === undefined || maxTransactionGas >= gas.limitMax) return gas;
  return { ...gas, limitMax: maxTransactionGas };
}
