/**
 * Who asked for each withdrawal, as the decision says that took it: that row is linked, and the withdrawal's
 * own word is not. Who asked never approves.
 */
import type { CanonicalValue, LinkKind } from "../../../ledger/tamper/link-rules.js";
import type { ExportLine } from "./export-file.js";
import type { RecordRoom, SameTexts, ToldRows } from "./told-rows.js";

type WithdrawalLine = Extract<ExportLine, { readonly type: "withdrawal" }>;

/** The key that asked; null where the API that was asked knew none. */
type Requester = string | null;

/** What an export tells of who asked for one withdrawal. */
export interface ToldRequester {
  /** By the decision that took it; undefined where a former release did, whose decisions do not say it. */
  decidedBy: Requester | undefined;
  /** By the withdrawal's own word; undefined in exports of former releases. */
  requestedBy: Requester | undefined;
}

/** Where this is kept, with what else is told of withdrawals. */
interface Kept {
  readonly withdrawals: ToldRows<ToldRequester>;
  readonly texts: SameTexts;
  readonly room: RecordRoom;
}

/** Places of a policy decision's fields (`linked-rows.ts`). */
const DECISION = { withdrawal: 1, stage: 3, rules: 5 } as const;

/** Places of an approval's fields. */
const APPROVAL = { withdrawal: 1, keyId: 2, decision: 3 } as const;

/** Gathers the lines and rows of one export; what does not hold is said to `fault`. */
export class RequestersCheck {
  readonly #approvals: (readonly [withdrawalId: string, keyId: string])[] = [];

  constructor(
    private readonly kept: Kept,
    private readonly fault: (text: string) => void,
  ) {}

  /** A row that is linked, or waits for its link. @throws TOO_LARGE */
  hear(kind: LinkKind, row: readonly CanonicalValue[]): void {
    const at = (place: number) => textOf(row[place]);
    if (kind === "approval" && at(APPROVAL.decision) === "approve") {
      this.kept.room.take();
      this.#approvals.push([at(APPROVAL.withdrawal), at(APPROVAL.keyId)]);
    }
    if (kind !== "decision" || at(DECISION.stage) !== "accept") return;
    const requester = requesterOf(at(DECISION.rules));
    if (requester === undefined) return;
    const id = at(DECISION.withdrawal);
    const record = this.kept.withdrawals.of(id);
    const { decidedBy: first } = record;
    if (first === undefined) record.decidedBy = this.#one(requester);
    else if (first !== requester) {
      this.fault(
        `withdrawal ${id} was taken as asked for by ${quoted(first)} and by ${quoted(requester)}`,
      );
    }
  }

  /** @throws TOO_LARGE */
  takeWithdrawal({ withdrawalId, requestedBy }: WithdrawalLine): void {
    this.kept.withdrawals.of(withdrawalId).requestedBy = this.#one(requestedBy);
  }

  #one(requester: Requester | undefined): Requester | undefined {
    return typeof requester === "string" ? this.kept.texts.one(requester) : requester;
  }

  check(): void {
    for (const [id, { decidedBy: requester, requestedBy: told }] of this.kept.withdrawals) {
      if (requester === undefined) continue;
      const decision = "the decision that took it";
      if (told === undefined) {
        this.fault(`the export does not say who asked for withdrawal ${id}, and ${decision} does`);
      } else if (told !== requester) {
        const says = `${decision} says by ${quoted(requester)}`;
        this.fault(`withdrawal ${id} was asked for by ${quoted(told)}, and ${says}`);
      }
    }
    for (const [id, keyId] of this.#approvals) {
      if (this.kept.withdrawals.get(id)?.decidedBy !== keyId) continue;
      this.fault(`withdrawal ${id} was approved by ${quoted(keyId)}, who asked for it`);
    }
  }
}

/** Of a decision's rules; undefined where they do not say it. What cannot be read has another digest. */
function requesterOf(rules: string): Requester | undefined {
  try {
    const data: unknown = JSON.parse(rules);
    const requestedBy: unknown = Reflect.get(Object(data), "requestedBy");
    return typeof requestedBy === "string" || requestedBy === null ? requestedBy : undefined;
  } catch {
    return undefined;
  }
}

function quoted(requester: Requester): string {
  return JSON.stringify(requester);
}

function textOf(value: CanonicalValue | undefined): string {
  return typeof value === "string" ? value : "";
}
