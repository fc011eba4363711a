/** The treasury of a desk's exchange, which sweeps coins alone. */
import { Mnemonic } from "ethers";
import type { Address } from "../../../chain/address.js";
import { readDepositSeed } from "../../../chain/derivation/deposit-keys.js";
import { present } from "../../../chain/errors.js";
import {
  type KillSwitchState,
  SWITCH_UNTOUCHED,
} from "../../../ledger/kill-switch/kill-switch-level.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../ledger/policy/policy.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { SweepSigner } from "../../../withdrawal-worker/treasury/sweep-signer.js";
import type { TreasuryContext } from "../../../withdrawal-worker/treasury/treasury-context.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { createPatientNode } from "../../helpers/exchange/patient-node.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { type Desk, derivation } from "../recovery/desk.js";
import { ANY_SWEEP } from "./treasury-bench.js";

const LIMITS = { gasPriceCapAtoken: 10n ** 9n, gasLimitMax: 1_000_000n };

const policy = hashPolicy({
  ...PERMISSIVE_POLICY,
  treasury: { topUpMaxAtoken: 0n, assets: new Map([["TOKEN", ANY_SWEEP]]) },
});

/** What a sweeper over the desk's database is made of. @param home its client, and the wallets it knows */
export async function treasuryOf(
  desk: Desk,
  home: {
    readonly rpc: JsonRpcClient;
    readonly wallets: readonly Address[];
    readonly readSwitch?: () => KillSwitchState;
  },
): Promise<TreasuryContext> {
  const { rpc, readSwitch = () => SWITCH_UNTOUCHED } = home;
  const wallets = () => home.wallets;
  const words = Mnemonic.fromPhrase(`${"test ".repeat(11)}junk`).phrase;
  const keys = present(await readDepositSeed(words), "the seed");
  const identity = { chainId: FAKE_CHAIN_ID, genesisHash: desk.chain.genesisHash };
  const signer = new SweepSigner(keys, derivation, {
    chainId: FAKE_CHAIN_ID,
    limits: LIMITS,
    readPolicy: () => policy,
    readKillSwitch: () => SWITCH_UNTOUCHED,
    wallets,
    contractOf: () => undefined,
  });
  return {
    database: desk.workerDatabase,
    rpc,
    evm: createEvmClient(rpc),
    node: createPatientNode(rpc, identity),
    signer,
    wallets,
    policy: { current: async () => policy },
    killSwitch: { read: async () => readSwitch() },
    chainId: FAKE_CHAIN_ID,
    settings: {
      sweepsAtOnce: 10,
      rebroadcastIntervalMs: 1_000,
      repriceAfterMs: 3_600_000,
      receiptPatienceMs: 3_000,
      gas: {
        marginPercent: 20,
        limitMax: 1_000_000n,
        priceFloorAtoken: 1n,
        priceCapAtoken: 10n ** 9n,
      },
    },
    clock: systemClock,
    log: silentLog,
  };
}
