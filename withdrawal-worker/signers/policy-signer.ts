/**
 * The signer's own rules, held against every intent before a key is asked: the kill switch, the
 * policy, fees and a total per day, each from a file of its own. What asks for signatures may have been
 * taken over; these files would have to be, too.
 */
import type { Address } from "../../chain/address.js";
import { AppError, errorCode, errorMessage } from "../../chain/errors.js";
import { decodeTransfer } from "../../chain/evm/erc20.js";
import { bytesToHex } from "../../chain/hex.js";
import { readPersonalSignature } from "../../chain/signing/personal-message.js";
import { TOKEN_SYMBOL } from "../../chain/units.js";
import { TREASURY } from "../../ledger/journal/accounts.js";
import {
  approvalDigest,
  approverOf,
  isSignedByApprover,
} from "../../ledger/policy/approval-digest.js";
import { isForbiddenDestination, type OwnAddresses } from "../../ledger/policy/destinations.js";
import { type KillSwitchState, stops } from "../../ledger/kill-switch/kill-switch-level.js";
import {
  approvalsFor,
  type BrokenRule,
  brokenSigningRule,
  type HashedPolicy,
  isAboveDay,
  rulesOf,
} from "../../ledger/policy/policy.js";
import { breathe } from "../../runtime/process/main-thread.js";
import { WorkerError } from "../errors.js";
import { checkSigned } from "./check-signed.js";
import { feeRefusal, type PaymentLimits } from "./fee-rule.js";
import { readSignedBefore } from "./signed-before.js";
import {
  type KeyHolder,
  type PaymentTerms,
  type ReviewedPayment,
  type Signer,
  type SigningIntent,
  type SigningOutcome,
  type SigningRefusal,
  type SigningRefusalCode,
  unlisted,
} from "./signer-port.js";
import { type CountedPayment, type SignerTotals, SignerTotalsError } from "./signer-totals.js";

/** What the rules are read from; each is looked at anew before every use. */
export interface SignerRules {
  readonly chainId: bigint;
  readonly limits: PaymentLimits;
  /** @throws ConfigError */
  readonly readPolicy: () => HashedPolicy;
  /** @throws KILL_SWITCH_UNREADABLE */
  readonly readKillSwitch: () => KillSwitchState;
  readonly totals: SignerTotals;
  readonly own: OwnAddresses;
  /** Address of an index of this home's deposit key; absent where the home has none. */
  readonly depositAddressAt?: ((index: number) => Address) | undefined;
  /** Contract of a token of the registry; undefined for a symbol that is none. */
  readonly contractOf: (asset: string) => Address | undefined;
}

const LASTING: ReadonlySet<SigningRefusalCode> = new Set<SigningRefusalCode>([
  "FORBIDDEN_DESTINATION",
  "BELOW_MINIMUM",
  "ABOVE_MAXIMUM",
  "DESTINATION_NOT_LISTED",
  "APPROVALS_MISSING",
  "APPROVALS_USED",
]);

const BROKEN_RULES: Readonly<Record<BrokenRule, string>> = {
  BELOW_MINIMUM: "the amount is below the policy's minimum",
  ABOVE_MAXIMUM: "the amount is above the policy's maximum (0 of an asset that it does not name)",
  DESTINATION_NOT_LISTED: "the destination is not on the customer's list",
};

const ABOVE_DAY = "the amount is above all that may be signed within 24 hours";

/** A signer that keeps to rules. */
export class PolicySigner implements Signer {
  readonly #holder: KeyHolder;
  readonly #rules: SignerRules;
  readonly #limits: PaymentLimits & { readonly signer: Address };
  #trouble: string | undefined;

  constructor(holder: KeyHolder, rules: SignerRules) {
    this.#holder = holder;
    this.#rules = rules;
    this.#limits = { ...rules.limits, signer: holder.address };
  }

  get address(): Address {
    return this.#holder.address;
  }

  get holdsKey(): boolean {
    return this.#holder.holdsKey === true;
  }

  trouble(): string | undefined {
    return this.#trouble;
  }

  async provesKey(text: string, { signal }: { readonly signal: AbortSignal }): Promise<boolean> {
    if (this.#holder.signText === undefined || "code" in this.#readRules()) return false;
    try {
      const signature = await this.#holder.signText(text, { signal });
      return readPersonalSignature(text, signature, this.address) !== undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof WorkerError)) throw error;
      return false;
    }
  }

  review(payments: readonly ReviewedPayment[]): readonly (SigningRefusal | undefined)[] {
    const rules = this.#readRules();
    if ("code" in rules) return payments.map(() => rules);
    const { totals } = this.#rules;
    if (payments.some((payment) => isCounted(payment, rules))) totals.look();
    const room = new DayRoom(totals, rules);
    const approved = new UsedApprovals(totals);
    return payments.map((payment) => {
      const refusal = this.#refusalOf(payment, rules);
      if (refusal !== undefined) return refusal;
      if (payment.customerId === TREASURY) return this.#strangerRefusal(payment, rules);
      const { withdrawalId, nonce, fromNonce } = payment;
      const used =
        fromNonce !== undefined && isApproved(payment, rules)
          ? approved.refusalFrom({ wallet: this.address, fromNonce, withdrawalId })
          : undefined;
      const isSigned = () => nonce !== undefined && this.#isSignedBefore({ ...payment, nonce });
      return used ?? room.take(payment, isSigned);
    });
  }

  async sign(
    intents: readonly SigningIntent[],
    { signal, withinMs = Number.POSITIVE_INFINITY }: Parameters<Signer["sign"]>[1],
  ): Promise<readonly SigningOutcome[]> {
    const startedMs = performance.now();
    const { decided, policyHash } = await this.#decide(intents, signal);
    const outcomes: SigningOutcome[] = [];
    const parallel = this.#holder.parallel ?? 1;
    for (let start = 0; start < intents.length; start += parallel) {
      // Hundreds of signatures take a tenth of a second: requests are accepted between them.
      await breathe(signal);
      if (start > 0 && performance.now() - startedMs >= withinMs) {
        outcomes.push(...intents.slice(start).map(() => ({ kind: "postponed" as const })));
        break;
      }
      const part = intents.slice(start, start + parallel);
      const stopped = this.#stoppedSince(policyHash);
      const answers = await Promise.all(
        part.map(async (intent, index) => {
          return decided[start + index] ?? stopped ?? this.#ask(intent, signal);
        }),
      );
      outcomes.push(...answers);
      const bad = answers.find(isBad);
      if (bad !== undefined) {
        const kind = "unanswered" as const;
        const rest = intents.slice(outcomes.length);
        outcomes.push(...rest.map(() => ({ kind, reason: bad.reason })));
        break;
      }
    }
    this.#note(outcomes);
    return outcomes;
  }

  /**
   * Refusals by rule; what may be signed is counted, on disk, before anybody is asked. Only what the day
   * bounds, or persons have signed for, waits for the lock of the totals, and is refused for now where it
   * cannot be counted.
   */
  async #decide(intents: readonly SigningIntent[], signal: AbortSignal): Promise<Decisions> {
    const { totals } = this.#rules;
    const rules = this.#readRules();
    const isAnyCounted =
      !("code" in rules) && intents.some((intent) => isPayout(intent) && isCounted(intent, rules));
    if (!isAnyCounted) return this.#noteUnbounded(this.#judge(intents, rules));
    try {
      const judged = await totals.exclusively(
        async () => {
          // Others may have held the lock for a while: the switch may be another one by now.
          const result = this.#judge(intents, this.#readRules());
          await totals.count(result.counted);
          return result;
        },
        { signal },
      );
      return this.#noteUnbounded(judged);
    } catch (error) {
      signal.throwIfAborted();
      if (!isPassing(error)) throw error;
      // A full disk, a lock that hangs: what cannot be counted is not signed, and is asked for again.
      const reason = `what is signed today cannot be written down: ${errorMessage(error)}`;
      const closed = () => refuse("STOPPED", reason);
      return this.#noteUnbounded(this.#judge(intents, this.#readRules(), closed));
    }
  }

  #noteUnbounded({ noted, ...decisions }: Judgement): Decisions {
    this.#rules.totals.note(noted);
    return decisions;
  }

  /** Hardware takes its time for a batch: what a person stops, or forbids, meanwhile is stopped there. */
  #stoppedSince(policyHash: string | undefined): SigningRefusal | undefined {
    const rules = this.#readRules();
    if ("code" in rules) return rules;
    if (rules.hash === policyHash) return undefined;
    return refuse(
      "POLICY_CHANGED",
      "the policy changed since this was asked for: it is asked again",
    );
  }

  /** @param takeRoom of the day, for what it bounds; by default what the totals leave of it */
  #judge(
    intents: readonly SigningIntent[],
    rules: HashedPolicy | SigningRefusal,
    takeRoom?: () => SigningRefusal,
  ): Judgement {
    const counted: CountedPayment[] = [];
    const noted: CountedPayment[] = [];
    if ("code" in rules) {
      return { decided: intents.map(() => rules), policyHash: undefined, counted, noted };
    }
    const room = new DayRoom(this.#rules.totals, rules);
    const approved = new UsedApprovals(this.#rules.totals);
    const decided = intents.map((intent): SigningOutcome | undefined => {
      if (!this.#meansWhatItSays(intent)) {
        return { kind: "wrong", reason: "a transaction is not the payment that it is meant for" };
      }
      if (intent.kind === "cancel") return this.#feeRefusal(intent);
      const isPaid = isPayout(intent);
      const refusal =
        this.#refusalOf(intent, rules) ??
        (isPaid ? undefined : this.#strangerRefusal(intent, rules)) ??
        this.#feeRefusal(intent);
      if (refusal !== undefined || !isPaid) return refusal;
      const payment = countedPayment(this.address, intent, intent.nonce);
      const isSignedBefore = this.#isSignedBefore(intent);
      if (!isCounted(intent, rules)) {
        if (!isSignedBefore) noted.push(payment);
        return undefined;
      }
      const approvedId = isApproved(intent, rules) ? intent.withdrawalId : undefined;
      const known = { ...payment, approvedId, isSignedBefore };
      const full = approved.take(known) ?? takeRoom?.() ?? room.take(intent, () => isSignedBefore);
      if (full === undefined) counted.push(known);
      return full;
    });
    return { decided, policyHash: rules.hash, counted, noted };
  }

  async #ask(intent: SigningIntent, signal: AbortSignal): Promise<SigningOutcome> {
    try {
      const raw = await this.#holder.signTransaction(intent, { signal });
      return checkSigned(raw, intent, this.#limits);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError)) throw error;
      return { kind: error.retriable ? "unanswered" : "wrong", reason: errorMessage(error) };
    }
  }

  #readRules(): HashedPolicy | SigningRefusal {
    try {
      const { level, reason } = this.#rules.readKillSwitch();
      if (stops(level, "stop-sign")) return refuse("STOPPED", `kill switch ${level}: ${reason}`);
      return this.#rules.readPolicy();
    } catch (error) {
      return refuse("POLICY_UNREADABLE", errorMessage(error));
    }
  }

  #refusalOf(payment: PaymentTerms, rules: HashedPolicy): SigningRefusal | undefined {
    const { policy, hash } = rules;
    const { asset } = payment;
    if (asset !== TOKEN_SYMBOL && this.#rules.contractOf(asset) === undefined) {
      return refuse("UNKNOWN_ASSET", unlisted(asset));
    }
    if (isForbiddenDestination(payment.destination, this.#rules.own)) {
      return refuse("FORBIDDEN_DESTINATION", "nobody is ever paid there");
    }
    const broken = brokenSigningRule(policy, payment);
    if (broken !== undefined) return refuse(broken, BROKEN_RULES[broken]);
    const { needed, signed } = approvalsFor(policy, payment);
    if (!signed) return undefined;
    const terms = { ...payment, chainId: this.#rules.chainId };
    const digest = approvalDigest(terms, { policyHash: hash, decision: "approve" });
    const signers = new Set(
      payment.approvals
        .filter((approval) => isSignedByApprover(policy, digest, approval))
        .map(({ publicKey }) => approverOf(policy, publicKey)?.name),
    );
    if (signers.size >= needed) return undefined;
    const reason = `${signers.size} of ${needed} signed approvals under the present policy`;
    return refuse("APPROVALS_MISSING", reason);
  }

  /** It passes: what was signed before is paid, or a transfer of nothing takes the nonce. */
  #feeRefusal(intent: SigningIntent): SigningRefusal | undefined {
    const reason = feeRefusal(intent, this.#limits);
    return reason === undefined ? undefined : refuse("FEE_ABOVE_MAXIMUM", reason);
  }

  /** What the treasury gives goes to the policy's cold storage, or to a deposit address of ours. */
  #strangerRefusal(
    { asset, destination, addressIndex }: PaymentTerms,
    { policy }: HashedPolicy,
  ): SigningRefusal | undefined {
    if (policy.treasury?.assets.get(asset)?.coldAddress === destination) return undefined;
    const { depositAddressAt } = this.#rules;
    const isOurs = addressIndex !== undefined && depositAddressAt?.(addressIndex) === destination;
    return isOurs
      ? undefined
      : refuse("FORBIDDEN_DESTINATION", "gas is given to deposit addresses of this home only");
  }

  /**
   * Whether this very payment was signed for its nonce: the totals know it, or the wallet's bytes say so.
   * What was signed is counted since then, and is paid once however dear it becomes.
   */
  #isSignedBefore(payment: PaymentTerms & Pick<SigningIntent, "nonce" | "signedBefore">): boolean {
    const { nonce, signedBefore } = payment;
    const { totals, chainId } = this.#rules;
    if (totals.isKnown(countedPayment(this.address, payment, nonce))) return true;
    const former = readSignedBefore(signedBefore, { chainId, nonce, signer: this.address });
    if (former?.to === undefined) return false;
    const { to, valueAtoken, data } = former;
    return this.#meansWhatItSays({ ...payment, kind: "payment", chainId, to, valueAtoken, data });
  }

  /** The transaction pays the destination the amount, and does nothing else. */
  #meansWhatItSays(
    intent: Omit<PaymentTerms, "approvals"> &
      Pick<SigningIntent, "kind" | "chainId" | "to" | "valueAtoken" | "data">,
  ): boolean {
    const { kind, chainId, to, valueAtoken, data, asset, destination, amountUnits } = intent;
    if (chainId !== this.#rules.chainId) return false;
    if (kind === "cancel") return to === this.address && valueAtoken === 0n && data.length === 0;
    if (asset === TOKEN_SYMBOL) {
      return to === destination && valueAtoken === amountUnits && data.length === 0;
    }
    const transfer = decodeTransfer(bytesToHex(data));
    // A token that nobody has told of here is refused for that.
    const contract = this.#rules.contractOf(asset) ?? to;
    return (
      to === contract &&
      valueAtoken === 0n &&
      transfer?.to === destination &&
      transfer.amountUnits === amountUnits
    );
  }

  #note(outcomes: readonly SigningOutcome[]): void {
    // A lasting refusal is about one payment: it ends, and the others go on.
    const reasons = outcomes.flatMap((outcome) => {
      const { kind } = outcome;
      if (kind === "signed" || kind === "postponed") return [];
      return kind === "refused" && outcome.isLasting ? [] : [outcome.reason];
    });
    if (outcomes.length > 0) this.#trouble = reasons[0] && `signer: ${reasons[0]}`;
  }
}

/** Whether nothing more may be asked behind an answer. */
function isBad(
  answer: SigningOutcome,
): answer is Extract<SigningOutcome, { readonly kind: "unanswered" | "wrong" }> {
  return answer.kind === "unanswered" || answer.kind === "wrong";
}

/** What was decided, and by which policy. */
interface Decisions {
  /** Of each intent what became of it by rule; undefined where it may be signed. */
  readonly decided: readonly (SigningOutcome | undefined)[];
  /** Undefined where none could be read. */
  readonly policyHash: string | undefined;
}

/** Decisions, and what they count. */
interface Judgement extends Decisions {
  /** Payments that have to be on disk before they are signed. */
  readonly counted: readonly CountedPayment[];
  readonly noted: readonly CountedPayment[];
}

/** What the day still allows, taken payment by payment. */
class DayRoom {
  readonly #totals: SignerTotals;
  readonly #policy: HashedPolicy;
  /** What was signed before, and what was taken since, by asset. */
  readonly #used = new Map<string, bigint>();

  constructor(totals: SignerTotals, policy: HashedPolicy) {
    this.#totals = totals;
    this.#policy = policy;
  }

  /** @param isSigned asked of what the day bounds: whether it was signed, and so counted, before */
  take(payment: PaymentTerms, isSigned: () => boolean): SigningRefusal | undefined {
    const { asset, amountUnits } = payment;
    const { signerDayMaxUnits: most } = rulesOf(this.#policy.policy, asset);
    if (most === undefined) return undefined;
    if (isSigned()) return undefined;
    // Behind it: a total that was lowered since takes back nothing that is signed already.
    if (isAboveDay(this.#policy.policy, payment)) return refuse("ABOVE_MAXIMUM", ABOVE_DAY);
    const usedUnits = (this.#used.get(asset) ?? this.#totals.signedUnits(asset)) + amountUnits;
    if (usedUnits > most) {
      const reason = `no more than ${most} of ${asset} is signed within 24 hours`;
      return refuse("DAY_TOTAL", reason);
    }
    this.#used.set(asset, usedUnits);
    return undefined;
  }
}

/** What persons have signed for is paid on one nonce, whatever a ledger asks for it again. */
class UsedApprovals {
  readonly #totals: SignerTotals;
  /** Slots by withdrawals that are asked for together. */
  readonly #taken = new Map<string, string>();

  constructor(totals: SignerTotals) {
    this.#totals = totals;
  }

  take({ approvedId, slot }: CountedPayment): SigningRefusal | undefined {
    if (approvedId === undefined) return undefined;
    const used = this.#totals.slotOf(approvedId) ?? this.#taken.get(approvedId) ?? slot;
    this.#taken.set(approvedId, used);
    return used === slot ? undefined : usedFor(used);
  }

  /** Of a payment that will get a nonce of the wallet, this one or a higher one. */
  refusalFrom(place: {
    readonly wallet: Address;
    readonly fromNonce: bigint;
    readonly withdrawalId: string;
  }): SigningRefusal | undefined {
    const used = this.#totals.slotOf(place.withdrawalId);
    if (used === undefined) return undefined;
    const [wallet, nonce = ""] = used.split(" ");
    // A ledger that was put back may give it the very same one.
    const isToCome = wallet === place.wallet && BigInt(nonce) >= place.fromNonce;
    return isToCome ? undefined : usedFor(used);
  }
}

function usedFor(slot: string): SigningRefusal {
  return refuse("APPROVALS_USED", `its signed approvals were used for another nonce (${slot})`);
}

/** What a customer is paid: neither a transfer of nothing nor what the treasury moves. */
function isPayout({ kind, customerId }: SigningIntent): boolean {
  return kind === "payment" && customerId !== TREASURY;
}

function isBounded({ asset }: PaymentTerms, { policy }: HashedPolicy): boolean {
  return rulesOf(policy, asset).signerDayMaxUnits !== undefined;
}

function isApproved(payment: PaymentTerms, { policy }: HashedPolicy): boolean {
  const { needed, signed } = approvalsFor(policy, payment);
  return signed && needed > 0;
}

/** Whether it has to be on disk before it is signed. */
function isCounted(payment: PaymentTerms, rules: HashedPolicy): boolean {
  return isBounded(payment, rules) || isApproved(payment, rules);
}

/** Faults of disk and lock; a damaged file is a person's matter, all others are faults of ours. */
function isPassing(error: unknown): boolean {
  if (error instanceof SignerTotalsError) return error.code === "SIGNER_TOTALS_BUSY";
  return errorCode(error) !== "UNKNOWN";
}

function countedPayment(wallet: Address, terms: PaymentTerms, nonce: bigint): CountedPayment {
  const { asset, amountUnits, destination } = terms;
  const meaning = `${asset} ${amountUnits} ${destination}`;
  return { slot: `${wallet} ${nonce}`, asset, amountUnits, meaning };
}

function refuse(code: SigningRefusalCode, reason: string): SigningRefusal {
  return { kind: "refused", code, reason, isLasting: LASTING.has(code) };
}
