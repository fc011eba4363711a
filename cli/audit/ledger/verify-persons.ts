/**
 * What an export says of wallets and of operators' decisions, held against the rows that tell each of their
 * changes.
 */
import type { CanonicalValue, LinkKind } from "../../../ledger/tamper/link-rules.js";
import type { ExportLine } from "./export-file.js";

type WalletLine = Extract<ExportLine, { readonly type: "wallet" }>;
type DecisionLine = Extract<ExportLine, { readonly type: "decision" }>;

/** How many there are, as the first line says; undefined in exports of former releases. */
interface Told {
  readonly wallets: number | undefined;
  readonly decisions: number | undefined;
}

/** Places of a wallet change's fields (`linked-rows.ts`). */
const CHANGE = { address: 1, status: 3, reason: 4, operator: 5 } as const;

/** Places of a proposal's fields. */
const PROPOSAL = { id: 0 } as const;

/** Places of an outcome's fields. */
const OUTCOME = { decision: 1, status: 2, decidedBy: 3 } as const;

/** Gathers the lines and rows of one export; what does not hold is said to `fault`. */
export class PersonsCheck {
  /** Of each wallet its last change: changes of one are linked in their order. */
  readonly #changes = new Map<string, string>();
  /** What became of each decision that is none any more to be made. */
  readonly #outcomes = new Map<string, string>();
  /** Decisions that were proposed. */
  readonly #proposed = new Set<string>();
  readonly #wallets = new Map<string, string>();
  readonly #decisions = new Map<string, string>();

  constructor(private readonly fault: (text: string) => void) {}

  /** A row that is linked, or waits for its link. */
  hear(kind: LinkKind, row: readonly CanonicalValue[]): void {
    const at = (place: number) => textOf(row[place]);
    if (kind === "wallet_change") {
      const { address, status, reason, operator } = CHANGE;
      this.#changes.set(at(address), stands(at(status), at(operator), at(reason)));
    }
    if (kind === "proposal") this.#proposed.add(at(PROPOSAL.id));
    if (kind !== "outcome") return;
    const { decision, status, decidedBy } = OUTCOME;
    if (this.#outcomes.has(at(decision))) this.fault(`decision ${at(decision)} was made twice`);
    this.#outcomes.set(at(decision), stands(at(status), at(decidedBy)));
  }

  takeWallet({ address, status, reason, operator }: WalletLine): void {
    if (this.#wallets.has(address)) this.fault(`wallet ${address} is there twice`);
    this.#wallets.set(address, stands(status, operator, reason));
  }

  takeDecision({ decisionId, status, decidedBy }: DecisionLine): void {
    const id = `${decisionId}`;
    if (this.#decisions.has(id)) this.fault(`decision ${id} is there twice`);
    const waits = status === PROPOSED && decidedBy === null;
    this.#decisions.set(id, waits ? PROPOSED : stands(status, decidedBy ?? ""));
  }

  /** @param rows how many of each kind there were */
  check(told: Told, rows: Readonly<Record<LinkKind, number>>): void {
    this.#count("wallets", told.wallets, [rows.wallet, this.#wallets.size]);
    this.#count("decisions", told.decisions, [rows.proposal, this.#decisions.size]);
    for (const [address, kept] of this.#wallets) {
      const last = this.#changes.get(address) ?? "nothing";
      if (kept !== last)
        this.fault(`wallet ${address} is ${kept}, and its last change says ${last}`);
    }
    for (const [id, kept] of this.#decisions) {
      if (!this.#proposed.has(id)) this.fault(`decision ${id} was proposed by nobody`);
      const made = this.#outcomes.get(id) ?? PROPOSED;
      if (kept !== made)
        this.fault(`decision ${id} is ${kept}, and what was made of it says ${made}`);
    }
    for (const id of this.#outcomes.keys()) {
      if (!this.#decisions.has(id)) this.fault(`decision ${id} was made, and is not there`);
    }
  }

  #count(
    what: string,
    wanted: number | undefined,
    [rows, told]: readonly [rows: number, told: number],
  ): void {
    if (wanted === undefined && rows === 0 && told === 0) return;
    if (wanted === rows && wanted === told) return;
    this.fault(`of ${rows} ${what} the export says of ${told} how they stand`);
  }
}

const PROPOSED = "proposed";

/** Quoted, so that no two differ that read alike. */
function stands(status: string, by: string, why?: string): string {
  return `${status} by ${JSON.stringify(by)}${why === undefined ? "" : `: ${JSON.stringify(why)}`}`;
}

function textOf(value: CanonicalValue | undefined): string {
  return typeof value === "string" ? value : "";
}
