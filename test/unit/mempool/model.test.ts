/**
 * Random submits, blocks and restarts against a simple model. Promise under test: a hash that
 * was answered for an executable transaction is mined, unless it was replaced.
 */
import { describe, expect, it } from "@jest/globals";
import * as fc from "fast-check";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { SignedTransaction } from "../../../chain/transaction.js";
import {
  account,
  createFixture,
  drain,
  type Fixture,
  submit,
  transfer,
  evmOnly,
} from "./support.js";

const SENDERS = [account(1), account(2), account(3)];

type Step =
  | { kind: "submit"; sender: number; nonce: number; price: number; value: number }[]
  | { kind: "block"; count: number }
  | { kind: "restart" }
  | { kind: "full disk"; failing: boolean }
  | { kind: "deposit"; sender: number };

const submission = fc.record({
  kind: fc.constant("submit" as const),
  sender: fc.nat(SENDERS.length - 1),
  nonce: fc.nat(7),
  price: fc.integer({ min: 1, max: 12 }),
  value: fc.integer({ min: 1, max: 200_000 }),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.array(submission, { minLength: 1, maxLength: 6 }), weight: 6 },
  { arbitrary: fc.record({ kind: fc.constant("block" as const), count: fc.nat(4) }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constant("restart" as const) }), weight: 1 },
  {
    arbitrary: fc.record({ kind: fc.constant("full disk" as const), failing: fc.boolean() }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant("deposit" as const),
      sender: fc.nat(SENDERS.length - 1),
    }),
    weight: 1,
  },
);

/** Everything that must hold of the pool at any time. */
function checkInvariants({ pool, state }: Fixture): void {
  let pendingCount = 0;
  let queuedCount = 0;
  let carriedBytes = 0;
  for (const [address, { pending, queued }] of pool.senders()) {
    pendingCount += pending.length;
    queuedCount += queued.length;
    const first = state.nonce(address);
    expect(pending.map(({ tx }) => tx.nonce)).toEqual(pending.map((_, at) => first + BigInt(at)));
    const end = first + BigInt(pending.length);
    expect(pool.pendingNonce(address)).toBe(end);
    let costAtoken = 0n;
    for (const { tx } of evmOnly(pending)) {
      costAtoken += tx.gasLimit * tx.maxFeePerGasAtoken + tx.valueAtoken;
      carriedBytes += encodeSdkTransaction(tx, address).length;
    }
    expect(costAtoken <= state.balanceAtoken(address)).toBe(true);
    for (const { tx } of queued) {
      expect(tx.nonce >= end).toBe(true);
      expect(pool.status(tx.hash)).toEqual({ status: "queued", missingNonce: end });
    }
    // A queued one follows without a gap only where the funds do not reach.
    const next = evmOnly(queued).find(({ tx }) => tx.nonce === end)?.tx;
    if (next !== undefined) {
      const neededAtoken = costAtoken + next.gasLimit * next.maxFeePerGasAtoken + next.valueAtoken;
      expect(neededAtoken > state.balanceAtoken(address)).toBe(true);
    }
  }
  expect(pool.counts()).toEqual({ pending: pendingCount, queued: queuedCount });
  expect(pool.carriedBytes()).toBe(carriedBytes);
}

class Model {
  /** Executable transactions that were promised, not yet mined or replaced. */
  readonly promised = new Map<Hash32, SignedTransaction>();

  constructor(private readonly fixture: Fixture) {}

  async run(next: Step): Promise<void> {
    const { fixture } = this;
    if (Array.isArray(next)) return this.submit(next);
    switch (next.kind) {
      case "block": {
        const taken = drain(fixture.pool).slice(0, next.count);
        fixture.mine(taken);
        for (const { tx } of taken) this.promised.delete(tx.hash);
        break;
      }
      case "restart":
        await fixture.pool.close();
        await fixture.restart();
        break;
      case "full disk":
        fixture.journal.failAppend = next.failing ? new Error("ENOSPC") : undefined;
        break;
      case "deposit": {
        const { address } = SENDERS[next.sender] ?? account(1);
        const balanceAtoken = fixture.state.balanceAtoken(address);
        fixture.state.balances.set(address, balanceAtoken + 300_000n);
        fixture.mine([], [address]);
        break;
      }
    }
    this.noteExecutable();
  }

  private async submit(list: Extract<Step, unknown[]>): Promise<void> {
    const { pool } = this.fixture;
    const transactions = list.map(({ sender, nonce, price, value }) =>
      transfer(SENDERS[sender] ?? account(1), nonce, {
        priceAtoken: BigInt(price),
        valueAtoken: BigInt(value),
      }),
    );
    const answers = await submit(pool, ...transactions);
    for (const [at, answer] of answers.entries()) {
      const tx = transactions[at];
      if (typeof answer === "string") expect(answer).toBe(tx?.hash);
      else expect(answer).toHaveProperty("code");
      if (this.fixture.journal.failAppend !== undefined) expect(typeof answer).not.toBe("string");
    }
    this.noteExecutable();
  }

  /** Promises end only by being mined or replaced at the same nonce for at least 10 % more. */
  private noteExecutable(): void {
    const { pool } = this.fixture;
    for (const [hash, tx] of this.promised) {
      const status = pool.status(hash);
      if (status.status === "pending") continue;
      expect(status.status).toBe("replaced");
      if (status.status !== "replaced") continue;
      this.promised.delete(hash);
      let heir = pool.status(status.by);
      let by = status.by;
      while (heir.status === "replaced") {
        by = heir.by;
        heir = pool.status(by);
      }
      expect(heir.status).toBe("pending");
      const held = pool.get(by);
      const [heirTx] = held === undefined ? [] : evmOnly([held]);
      const heirPrice = heirTx?.tx.maxFeePerGasAtoken ?? 0n;
      expect(heirPrice * 100n >= tx.maxFeePerGasAtoken * 110n).toBe(true);
    }
    for (const [, { pending }] of pool.senders()) {
      for (const { tx } of evmOnly(pending)) this.promised.set(tx.hash, tx);
    }
  }
}

describe("the pool against its model", () => {
  it("mines every promised transaction that is not replaced", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const fixture = await createFixture({
          limits: { executablePerSender: 5, queuedPerSender: 3, totalCount: 12, queuedCount: 6 },
        });
        for (const { address } of SENDERS) fixture.state.balances.set(address, 1_500_000n);
        const model = new Model(fixture);
        for (const next of steps) {
          await model.run(next);
          checkInvariants(fixture);
        }
        const promised = [...model.promised.keys()];
        for (let blocks = 0; blocks < 40 && fixture.pool.counts().pending > 0; blocks++) {
          fixture.mine(drain(fixture.pool).slice(0, 2));
        }
        expect(promised.map((hash) => fixture.pool.status(hash).status)).toEqual(
          promised.map(() => "included"),
        );
        await fixture.pool.close();
        expect(fixture.faults.every((fault) => String(fault).includes("ENOSPC"))).toBe(true);
        const left = [...fixture.pool.senders()].flatMap(([, { queued }]) => queued);
        expect([...fixture.journal.entries.keys()].toSorted()).toEqual(
          left.map(({ tx }) => tx.hash).toSorted(),
        );
      }),
      { numRuns: 150, seed: 20_260_724 },
    );
  });
});
