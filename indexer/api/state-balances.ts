/**
 * What the node's state says of a statement's lines. Contracts may make each question as dear as a call can
 * be, and anybody asks: a page of one statement at a time, and as much of it as there is time for.
 */
import { type Address, parseAddress } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import { MAX_QUERIES_AT_ONCE } from "../../rpc-client/tokens/token-balances.js";
import type { Clock } from "../../runtime/process/clock.js";
import { Turns } from "../../runtime/turns/turns.js";
import { RoundTime } from "../ingest/round-time.js";
import { type ApiContext, hexOf } from "./reads.js";

/** Pages that wait for their turn, each for less than half a minute; others are not asked for. */
const MAX_WAITING = 8;

/** Which lines: of one account, and the coin (no bytes) or a token. */
export interface StateLines {
  readonly address: Address;
  readonly asset: Buffer;
  readonly heights: readonly Height[];
}

/** A balance by state; undefined where the node was not asked, does not have it or did not answer. */
type Balance = bigint | undefined;

/** The questions of all statements. */
export class StateBalances {
  private readonly turns = new Turns({
    maxRunning: 1,
    maxWaiting: MAX_WAITING,
    full: () => new Error("too many statements are held against state"),
  });

  constructor(
    private readonly node: Pick<ApiContext["node"], "accountStates" | "tokenBalanceAnswers">,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {}

  /** In the order of the heights; those at the end may be left out. @throws the signal's reason */
  async of(lines: StateLines, signal: AbortSignal): Promise<readonly Balance[]> {
    const balances: Balance[] = [];
    try {
      if (lines.asset.length > 0) {
        await this.turns.run(signal, () => this.addOfToken(lines, balances, signal));
      } else {
        // Looks into a trie: no code runs for them.
        const queries = lines.heights.map((at) => ({ address: lines.address, at }));
        const states = await this.node.accountStates(queries, { signal });
        balances.push(...states.map((state) => (state.ok ? state.balanceAtoken : undefined)));
      }
    } catch {
      signal.throwIfAborted();
    }
    return balances;
  }

  private async addOfToken(
    { address: account, asset, heights }: StateLines,
    balances: Balance[],
    signal: AbortSignal,
  ): Promise<void> {
    const token = parseAddress(hexOf(asset));
    const parts = Array.from({ length: Math.ceil(heights.length / MAX_QUERIES_AT_ONCE) }, (_, at) =>
      heights.slice(at * MAX_QUERIES_AT_ONCE, (at + 1) * MAX_QUERIES_AT_ONCE),
    );
    for (const part of new RoundTime(this.clock).asFarAsThereIsTime(parts)) {
      const queries = part.map((at) => ({ token, account, at }));
      const answers = await this.node.tokenBalanceAnswers(queries, { signal });
      balances.push(...answers.map((answer) => (answer.ok ? answer.units : undefined)));
    }
  }
}
