/** The policy at the moment a request is accepted: refusals, the fee, and who has to agree. */
import type { Sql } from "../../runtime/sql/sql.js";
import { TREASURY } from "../journal/accounts.js";
import { lockKillSwitch } from "../kill-switch/kill-switch.js";
import { stops } from "../kill-switch/kill-switch-level.js";
import { LimitCounts } from "./limit-counts.js";
import {
  type ApprovalRule,
  approvalsFor,
  type BrokenRule,
  brokenRule,
  type HashedPolicy,
  type JudgedRequest,
  rulesOf,
} from "./policy.js";
import { tooNewPairs } from "./policy-store.js";

/** Why a policy refuses a new request. */
export type PolicyRefusal =
  | BrokenRule
  | "WITHDRAWALS_STOPPED"
  | "DESTINATION_TOO_NEW"
  | "LIMIT_EXCEEDED";

/** A refusal, and which rule it was where the code does not say it. */
export interface Refused {
  readonly refusal: PolicyRefusal;
  readonly rule?: string;
}

/** What a request that is accepted is accepted with. */
export interface AcceptTerms extends Pick<ApprovalRule, "needed" | "signed"> {
  readonly feeUnits: bigint;
}

/** The judge of one transaction: what it has accepted counts towards limits. */
export class AcceptJudge {
  readonly #policy: HashedPolicy;
  readonly #isStopped: boolean;
  readonly #tooNew: ReadonlySet<JudgedRequest>;
  readonly #counts: LimitCounts;

  private constructor(parts: {
    readonly policy: HashedPolicy;
    readonly isStopped: boolean;
    readonly tooNew: ReadonlySet<JudgedRequest>;
    readonly counts: LimitCounts;
  }) {
    this.#policy = parts.policy;
    this.#isStopped = parts.isStopped;
    this.#tooNew = parts.tooNew;
    this.#counts = parts.counts;
  }

  /** Reads, under locks, all that judging these requests takes. */
  static async open(
    tx: Sql,
    requests: readonly JudgedRequest[],
    rules: { readonly policy: HashedPolicy; readonly isStopped: boolean },
  ): Promise<AcceptJudge> {
    const { policy } = rules;
    const { level } = await lockKillSwitch(tx);
    const isStopped = rules.isStopped || stops(level, "stop-new");
    const tooNew = await tooNewPairs(tx, policy, requests);
    return new AcceptJudge({
      policy,
      isStopped,
      tooNew,
      counts: await LimitCounts.lock(tx, policy, requests),
    });
  }

  /** Fee and approvals of a request. */
  termsOf(request: JudgedRequest): AcceptTerms {
    const isOurs = request.customerId === TREASURY;
    const feeUnits = isOurs ? 0n : rulesOf(this.#policy.policy, request.asset).feeUnits;
    return { feeUnits, ...approvalsFor(this.#policy.policy, request) };
  }

  /** Why a new request is refused; undefined when it is not. */
  refusalOf(request: JudgedRequest): Refused | undefined {
    if (this.#isStopped) return { refusal: "WITHDRAWALS_STOPPED" };
    const broken = brokenRule(this.#policy.policy, request);
    if (broken !== undefined) return { refusal: broken };
    if (this.#tooNew.has(request)) return { refusal: "DESTINATION_TOO_NEW" };
    const rule = this.#counts.exceeded(request);
    return rule === undefined ? undefined : { refusal: "LIMIT_EXCEEDED", rule };
  }

  /** Counts a request that is accepted. */
  add(request: JudgedRequest): void {
    this.#counts.add(request);
  }
}
