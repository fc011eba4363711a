/** Signers and rules for tests of the withdrawal worker: nothing is forbidden unless a test says so. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type KillSwitchState,
  SWITCH_UNTOUCHED,
} from "../../../ledger/kill-switch/kill-switch-level.js";
import { readKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { type HashedPolicy, hashPolicy, PERMISSIVE_POLICY } from "../../../ledger/policy/policy.js";
import type { AcceptRules } from "../../../ledger/withdrawals/withdrawals.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { systemClock } from "../../../runtime/process/clock.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import type { LaneContext } from "../../../withdrawal-worker/lane/lane-context.js";
import { createScreener } from "../../../withdrawal-worker/lane/slots/screening.js";
import { createKeyHolder } from "../../../withdrawal-worker/signers/keystore-holder.js";
import type { SigningLimits } from "../../../withdrawal-worker/signers/check-signed.js";
import type { PaymentLimits } from "../../../withdrawal-worker/signers/fee-rule.js";
import {
  PolicySigner,
  type SignerRules,
} from "../../../withdrawal-worker/signers/policy-signer.js";
import type { KeyHolder } from "../../../withdrawal-worker/signers/signer-port.js";
import { SignerTotals } from "../../../withdrawal-worker/signers/signer-totals.js";

/** The policy that forbids nothing. */
export const PERMISSIVE: HashedPolicy = hashPolicy(PERMISSIVE_POLICY);

/** Rules that take any request. */
export const ANY_REQUEST: AcceptRules = {
  minimumAtoken: 0n,
  nowMs: 0,
  policy: PERMISSIVE,
  isStopped: false,
};

/** A file in a folder of its own. */
export function freshFile(name: string): string {
  return join(mkdtempSync(join(tmpdir(), "causeway-signing-")), name);
}

/** What a signer's rules read: tests change the fields. */
export interface RuleFiles {
  policy: HashedPolicy;
  killSwitch: KillSwitchState;
}

/** Limits of a signer; without one of fees it signs for any. */
type TestLimits = SigningLimits & Partial<PaymentLimits>;

const ANY_FEE_ATOKEN = 10n ** 24n;

/** A signer over a holder with rules that a test can change. */
export function signerOver(
  holder: KeyHolder,
  rules: Partial<Omit<SignerRules, "limits">> & {
    readonly chainId: bigint;
    readonly limits: TestLimits;
  },
  files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED },
): PolicySigner {
  return new PolicySigner(holder, {
    readPolicy: () => files.policy,
    readKillSwitch: () => files.killSwitch,
    totals: new SignerTotals(freshFile("signer-totals"), systemClock),
    own: { wallets: [holder.address], tokenContracts: [] },
    contractOf: () => undefined,
    ...rules,
    limits: { feePerPayoutAtoken: ANY_FEE_ATOKEN, ...rules.limits },
  });
}

/** What a lane needs of keys and rules. */
export function laneRules(parts: {
  readonly privateKey: Uint8Array;
  readonly chainId: bigint;
  readonly limits: TestLimits;
  readonly sql: Sql;
  readonly files?: RuleFiles;
  readonly holder?: KeyHolder;
  /** Contracts of tokens, by symbol. */
  readonly contractOf?: SignerRules["contractOf"];
  readonly depositAddressAt?: SignerRules["depositAddressAt"];
}): Pick<LaneContext, "signer" | "policy" | "killSwitch" | "screener"> {
  const { privateKey, chainId, limits, sql } = parts;
  const files = parts.files ?? { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
  const holder = parts.holder ?? createKeyHolder(privateKey);
  return {
    signer: signerOver(
      holder,
      {
        chainId,
        limits,
        depositAddressAt: parts.depositAddressAt,
        ...(parts.contractOf && { contractOf: parts.contractOf }),
      },
      files,
    ),
    policy: { current: async () => files.policy },
    killSwitch: { read: () => readKillSwitch(sql) },
    screener: createScreener(createLogger({ component: "test", level: "silent" })),
  };
}
