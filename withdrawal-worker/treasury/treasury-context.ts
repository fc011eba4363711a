/** What all parts of the treasury share. */
import type { Address } from "../../chain/address.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../rpc-client/json-rpc.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { GasSettings } from "../gas.js";
import type { KillSwitch, PolicySource } from "../lane/lane-context.js";
import type { WalletNode } from "../lane/wallet-node.js";
import type { SweepSigner } from "./sweep-signer.js";

/** Settings of the treasury. */
export interface TreasurySettings {
  /** Sweeps under way at once, 1-1000. */
  readonly sweepsAtOnce: number;
  readonly rebroadcastIntervalMs: number;
  readonly repriceAfterMs: number;
  /** How long the receipt of a used nonce may be missing before the sweep freezes. */
  readonly receiptPatienceMs: number;
  readonly gas: Pick<
    GasSettings,
    "marginPercent" | "limitMax" | "priceFloorAtoken" | "priceCapAtoken"
  >;
}

/** Its parts. */
export interface TreasuryContext {
  readonly database: SqlDatabase;
  readonly rpc: JsonRpcClient;
  readonly evm: Pick<EvmClient, "tokenBalances" | "getBlockHeader">;
  readonly node: WalletNode;
  readonly signer: SweepSigner;
  /** Hot wallets that this home knows. */
  readonly wallets: () => readonly Address[];
  readonly policy: PolicySource;
  readonly killSwitch: KillSwitch;
  readonly chainId: bigint;
  readonly settings: TreasurySettings;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Names of the places where a test can kill the treasury: every durable step of a sweep. The text
 * says what a crash there leaves behind.
 */
export const TREASURY_FAILPOINTS = {
  /** The intent stands, nothing is signed. */
  afterIntent: "treasury.after-intent",
  /** Gas is asked for of a hot wallet. */
  afterTopUp: "treasury.after-top-up",
  /** There is gas: nonce and price stand, nothing is signed. */
  afterReady: "treasury.after-ready",
  /** Bytes are signed and not stored: they are lost, the nonce is not. */
  beforeAttempt: "treasury.before-attempt",
  /** Bytes are stored and not sent. */
  afterAttempt: "treasury.after-attempt",
  /** The node has the bytes, the ledger does not know. */
  afterSend: "treasury.after-send",
  /** Coins for cold storage are asked for of a hot wallet. */
  afterCold: "treasury.after-cold",
} as const;
