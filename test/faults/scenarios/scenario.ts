/** What a scenario is. Its numbers are those of the list in docs/faults.md. */
import type {
  Backend,
  LabExchange,
  LabExchangeOptions,
} from "../../helpers/faults/lab/lab-exchange.js";

/** One fault, tried on an exchange of its own under load; the judgement follows it. */
export interface Scenario {
  readonly number: number;
  readonly name: string;
  /** Where the queue lives; both without it. */
  readonly backends?: readonly Backend[];
  /** True where it strikes what all scenarios share: it runs by itself. */
  readonly isShared?: boolean;
  /** How its exchange differs. */
  readonly setup?: Omit<LabExchangeOptions, "chain" | "backend" | "seed">;
  /** Strikes; throws when the fault did not happen or a promise was broken while it lasted. */
  run(lab: LabExchange): Promise<void>;
}

/** Fails where a fault never happened: such a scenario would show nothing. */
export function assertHappened(count: number, what: string): void {
  if (count === 0) throw new Error(`nothing was tried: ${what} never happened`);
}
