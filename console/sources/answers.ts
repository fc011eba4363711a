/** Answers of the exchange's APIs as pages read them: the fields that are shown, parsed once. */
import { z } from "zod";

/** Amounts and their sums, which may be above 2^256: as long as the API files let them be. */
const units = z
  .string()
  .regex(/^(0|-?[1-9][0-9]{0,99})$/)
  .transform((text) => BigInt(text));
const time = z.string();
const next = z.string().nullable();

const deposit = z.object({
  id: z.string(),
  address: z.string(),
  customerId: z.string(),
  asset: z.string(),
  amountUnits: units,
  status: z.string(),
  blockNumber: z.number(),
  blockHash: z.string(),
  txHash: z.string(),
  txIndex: z.number(),
  opIndex: z.number(),
  confirmations: z.number(),
});

/** A deposit. */
export type DepositView = z.output<typeof deposit>;

/** `GET /v1/deposits`. */
export const depositPage = z.object({ deposits: z.array(deposit), next });

/** `GET /v1/deposits/explain`. */
export const explanation = z.object({
  txHash: z.string(),
  code: z.string(),
  message: z.string(),
  blockNumber: z.number().nullable(),
  deposits: z.array(deposit),
});

/** `GET /v1/deposits/{id}/evidence`. */
export const evidence = z.object({
  deposit,
  chain: z
    .object({
      blockHash: z.string(),
      timestamp: time,
      operation: z.object({ type: z.string(), status: z.string(), amountUnits: units }).nullable(),
      balanceBeforeUnits: units,
      balanceAfterUnits: units,
      operationsUnits: units,
      agrees: z.boolean(),
    })
    .nullable(),
  chainFault: z.object({ code: z.string(), message: z.string() }).nullable(),
  differences: z.array(z.object({ code: z.string(), message: z.string(), nextStep: z.string() })),
  journal: z.array(
    z.object({
      kind: z.string(),
      key: z.string(),
      postedAt: time,
      postings: z.array(
        z.object({ asset: z.string(), debit: z.string(), credit: z.string(), amountUnits: units }),
      ),
    }),
  ),
  balanceProof: z.string().nullable(),
});

/** What stands behind a deposit. */
export type EvidenceView = z.output<typeof evidence>;

const withdrawal = z.object({
  id: z.string(),
  customerId: z.string(),
  asset: z.string(),
  to: z.string(),
  amountUnits: units,
  feeUnits: units,
  status: z.string(),
  reason: z.string().nullable(),
  expiresAt: time.nullable(),
  wallet: z.string().nullable(),
  nonce: z.number().nullable(),
  hashes: z.array(z.string()),
  txHash: z.string().nullable(),
  blockNumber: z.number().nullable(),
  history: z.array(z.object({ status: z.string(), at: time })),
  approvalsNeeded: z.number(),
  approvalsGiven: z.number(),
  approvals: z.array(
    z.object({
      keyId: z.string(),
      decision: z.string(),
      reason: z.string(),
      policyHash: z.string(),
      signed: z.boolean(),
      /** Undefined by an API of before. */
      counts: z.boolean().optional(),
      at: time,
    }),
  ),
});

/** A withdrawal. */
export type WithdrawalView = z.output<typeof withdrawal>;

/** `GET /v1/withdrawals/{id}`, and what actions on it answer. */
export const withdrawalAnswer = withdrawal;

/** `GET /v1/withdrawals`. */
export const withdrawalPage = z.object({ withdrawals: z.array(withdrawal), next });

/** `GET /v1/withdrawals/{id}/approvals`. */
export const approvalTerms = z.object({
  status: z.string(),
  needed: z.number(),
  given: z.number(),
  signed: z.boolean(),
  policyHash: z.string().nullable(),
  approvers: z.array(z.object({ name: z.string(), publicKey: z.string() })),
  messages: z.array(z.object({ decision: z.string(), text: z.string(), sha256: z.string() })),
});

const wallet = z.object({
  address: z.string(),
  label: z.string(),
  status: z.string(),
  since: time,
  reason: z.string(),
  balanceAtoken: units.nullable(),
  balanceHeight: z.number().nullable(),
  reservedAtoken: units,
  freeAtoken: units,
  nextNonce: z.number().nullable(),
  openSlots: z.number(),
  oldestSlot: z.object({ nonce: z.number(), withdrawalId: z.string(), takenAt: time }).nullable(),
  frozen: z.boolean(),
  frozenReason: z.string().nullable(),
  leaseHolder: z.string().nullable(),
  /** Undefined by an API of before. */
  keyHeld: z.boolean().optional(),
});

/** Whether nobody can pay from a wallet that is meant to: a worker on its lane says nothing of its key. */
export function lacksKey({ status, keyHeld }: z.output<typeof wallet>): boolean {
  return status === "active" && keyHeld === false;
}

/** `GET /v1/wallets`. */
export const walletList = z.object({ wallets: z.array(wallet) });

const treasuryAsset = z.object({
  asset: z.string(),
  hotUnits: units,
  depositAddressesUnits: units,
  inTransitUnits: units,
  /** Undefined by an API of before. */
  strandedUnits: units.optional(),
  coldUnits: units,
  openSweeps: z.number(),
  frozenSweeps: z.number(),
  refill: z
    .object({
      amountUnits: units,
      cameUnits: units,
      /** The one that it has to go to; undefined by an API of before. */
      wallet: z.string().nullable().optional(),
      /** Those that it may go to; undefined by an API of before. */
      wallets: z.array(z.string()).optional(),
    })
    .nullable(),
});

/** Where the coins of an asset are. */
export type TreasuryAssetView = z.output<typeof treasuryAsset>;

/** `GET /v1/treasury`. */
export const treasuryAnswer = z.object({ assets: z.array(treasuryAsset) });

/** Section `treasury` of the terms of `GET /v1/policy`. */
export const treasuryTerms = z.object({
  assets: z.record(
    z.string(),
    z.object({
      coldAddress: z.string().nullable(),
      band: z.object({ lowUnits: units, targetUnits: units, highUnits: units }).nullable(),
    }),
  ),
});

/** What the policy says of the treasury's assets, by symbol. */
export type TreasuryTerms = Readonly<Partial<z.output<typeof treasuryTerms>["assets"]>>;

const sweep = z.object({
  id: z.number(),
  address: z.string(),
  asset: z.string(),
  wallet: z.string(),
  amountUnits: units,
  state: z.string(),
  reason: z.string().nullable(),
  txHash: z.string().nullable(),
  createdAt: time,
});

/** A sweep. */
export type SweepView = z.output<typeof sweep>;

/** `GET /v1/sweeps`. */
export const sweepPage = z.object({ sweeps: z.array(sweep), next });

/** `GET /v1/assets`. */
export const assetList = z.object({
  assets: z.array(
    z.object({
      asset: z.string(),
      decimals: z.number(),
      paused: z.boolean(),
      reason: z.string().nullable(),
    }),
  ),
});

const reconciliation = z.object({
  id: z.number(),
  at: time,
  blockNumber: z.number(),
  clean: z.boolean(),
  findings: z.array(z.string()),
  assets: z.array(
    z.object({
      asset: z.string(),
      accounts: z.array(
        z.object({
          account: z.string(),
          chainUnits: units,
          ledgerUnits: units,
          inFlightUnits: units,
        }),
      ),
      availableUnits: units,
      heldUnits: units,
    }),
  ),
});

/** `GET /v1/reconciliations`. */
export const reconciliationPage = z.object({ reconciliations: z.array(reconciliation), next });

const incident = z.object({
  id: z.number(),
  kind: z.string(),
  blockNumber: z.number().nullable(),
  message: z.string(),
  remedy: z.string(),
  openedAt: time,
  resolvedAt: time.nullable(),
  resolvedBy: z.string().nullable(),
});

/** An incident. */
export type IncidentView = z.output<typeof incident>;

/** `GET /v1/incidents`. */
export const incidentPage = z.object({ incidents: z.array(incident), next });

/** Closed by a recovery alone. */
export const RECOVERY = "RECOVERY";

/** The open incident: of two the recovery, before which nothing else can be judged. */
export function stoppingIncident(incidents: readonly IncidentView[]): IncidentView | undefined {
  const open = incidents.filter(({ resolvedAt }) => resolvedAt === null);
  return open.find(({ kind }) => kind === RECOVERY) ?? open[0];
}

/** `POST /v1/incidents/resume`. */
export const resumed = z.object({ resumed: z.boolean() });

/** `GET /v1/calls`. */
export const callPage = z.object({
  calls: z.array(
    z.object({
      seq: z.number(),
      keyId: z.string(),
      actor: z.string().nullable(),
      reason: z.string().nullable(),
      service: z.string(),
      method: z.string(),
      path: z.string(),
      at: time,
    }),
  ),
  next,
});

/** `GET /v1/decisions`. */
export const decisionPage = z.object({
  decisions: z.array(
    z.object({
      id: z.number(),
      kind: z.string(),
      key: z.string(),
      reason: z.string(),
      status: z.string(),
      proposedBy: z.string(),
      decidedBy: z.string().nullable(),
      proposedAt: time,
    }),
  ),
  next,
});

const span = z.object({
  from: time,
  to: time,
  count: z.number(),
  medianSeconds: z.number(),
  p95Seconds: z.number(),
});

/** How long some deposits or withdrawals took. */
export type SpanView = z.output<typeof span>;

const coins = z.object({
  at: time,
  availableUnits: units,
  heldUnits: units,
  /** These three are undefined in comparisons of before, and by an API of before. */
  owedUnits: units.optional(),
  coldUnits: units.optional(),
  inTransitUnits: units.optional(),
  accounts: z.array(z.object({ account: z.string(), chainUnits: units })),
});

/** What there was of the chain's own coin, at one height. */
export type CoinsView = z.output<typeof coins>;

/** `GET /v1/figures`. */
export const figures = z.object({
  coins: z.array(coins),
  depositDelays: z.array(span),
  withdrawalLatencies: z.array(span),
});

/** `GET /v1/fees`. */
export const feeList = z.object({
  from: time,
  fees: z.array(
    z.object({
      day: z.string(),
      asset: z.string(),
      networkFeeUnits: units,
      serviceFeeUnits: units,
      failedPayoutUnits: units,
    }),
  ),
});

/** `GET /v1/policy`. */
export const policyAnswer = z.object({
  hash: z.string(),
  chainId: z.string(),
  terms: z.record(z.string(), z.unknown()),
});

/** The policy in force. */
export type PolicyView = z.output<typeof policyAnswer>;

const switchState = z.object({
  level: z.string(),
  reason: z.string(),
  by: z.string(),
  at: time.nullable(),
});

/** `GET` and `POST /v1/kill-switch`. */
export const killSwitch = z.object({
  level: z.string(),
  home: switchState,
  ledger: switchState,
  homeFault: z.string().nullable().optional(),
});

/** What `GET /v1/kill-switch` answers. */
export type KillSwitchView = z.output<typeof killSwitch>;

const webhook = z.object({
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  description: z.string().nullable(),
  status: z.string(),
  reason: z.string().nullable(),
  createdAt: time,
  cursorSeq: z.number(),
  behindEvents: z.number(),
  pending: z.number(),
  dead: z.number(),
});

/** `GET /v1/webhooks`. */
export const webhookList = z.object({ webhooks: z.array(webhook) });

/** `GET /v1/webhooks/{id}`, and what redelivery answers: with a note where there is nothing to send. */
export const webhookAnswer = webhook.extend({ note: z.string().optional() });

/** `GET /v1/webhooks/{id}/deliveries`. */
export const deliveryPage = z.object({
  deliveries: z.array(
    z.object({
      seq: z.number(),
      type: z.string(),
      status: z.string(),
      attempts: z.number(),
      nextTryAt: time.nullable(),
      lastStatus: z.number().nullable(),
      lastError: z.string().nullable(),
      changedAt: time,
    }),
  ),
  next,
});
