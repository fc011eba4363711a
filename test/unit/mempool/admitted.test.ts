/**
 * Random submits of all types, rivals from elsewhere, deposits, blocks and crashes in a pool that
 * is full most of the time. Promise under test: what was admitted can be included as soon as its
 * nonce is due, or is dropped with a reason; what makes room is the cheapest there is.
 */
import { minedTransactions } from "../../../node/blocks/block-pool.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { describe, expect, it } from "@jest/globals";
import * as fc from "fast-check";
import type { Address } from "../../../chain/address.js";
import { bigintToBytes, type Hash32, hexToBytes } from "../../../chain/hex.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import {
  decodeTransaction,
  effectiveGasPriceAtoken,
  type SignedTransaction,
} from "../../../chain/transaction.js";
import { executionFault } from "../../../chain/transaction-rules.js";
import {
  account,
  CHAIN_ID,
  createFixture,
  drain,
  type Fixture,
  RECIPIENT,
  evmOnly,
} from "./support.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_120);
console.log(`admitted: seed ${SEED} (CAUSEWAY_TEST_SEED)`);

const SENDERS = Array.from({ length: 8 }, (_, n) => account(1 + n));
const POOL_SIZE = 6;

interface Fields {
  readonly sender: number;
  /** Of the account's next nonce. */
  readonly ahead: number;
  readonly margin: bigint;
  readonly tip: bigint;
  readonly gas: number;
  readonly value: number;
  readonly isPeers: boolean;
}

type Step =
  | { readonly kind: "submit"; readonly list: readonly Fields[] }
  | { readonly kind: "block"; readonly count: number; readonly usedShare: number }
  | { readonly kind: "rival"; readonly sender: number; readonly percent: number }
  | { readonly kind: "deposit"; readonly sender: number }
  | { readonly kind: "crash" };

const sender = fc.nat(SENDERS.length - 1);
const fields: fc.Arbitrary<Fields> = fc.record({
  sender,
  ahead: fc.oneof(fc.nat(1), fc.nat(2), fc.nat(4)),
  /** Of the cap above the tip; below it is not valid. */
  margin: fc.oneof(
    { arbitrary: fc.bigInt({ min: 0n, max: 10n }), weight: 18 },
    { arbitrary: fc.constantFrom(-1n, 2n ** 200n), weight: 2 },
  ),
  tip: fc.bigInt({ min: 1n, max: 30n }),
  gas: fc.integer({ min: 21_000, max: 40_000 }),
  value: fc.integer({ min: 0, max: 300_000 }),
  isPeers: fc.boolean(),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant("submit" as const),
      list: fc.array(fields, { minLength: 1, maxLength: 8 }),
    }),
    weight: 8,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant("block" as const),
      count: fc.nat(3),
      usedShare: fc.nat(100),
    }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant("rival" as const),
      sender,
      percent: fc.constantFrom(0, 60, 95, 100),
    }),
    weight: 3,
  },
  { arbitrary: fc.record({ kind: fc.constant("deposit" as const), sender }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant("crash" as const) }), weight: 1 },
);

/** A type 2 transaction whose signature only names its sender: recovery is faked. */
function build(given: Fields, nextNonce: bigint): SignedTransaction {
  const { sender: index, ahead, margin, tip, gas, value } = given;
  const numbers = [CHAIN_ID, nextNonce + BigInt(ahead), tip, tip + margin, BigInt(gas)].map(
    bigintToBytes,
  );
  const signature = [0n, BigInt(index + 1), 1n].map(bigintToBytes);
  const to = hexToBytes(RECIPIENT);
  const tail = [bigintToBytes(BigInt(value)), new Uint8Array(0), [], ...signature];
  return decodeTransaction(Buffer.concat([Uint8Array.of(2), encodeRlp([...numbers, to, ...tail])]));
}

const senderOf = (tx: SignedTransaction): Address => {
  const found = SENDERS[Number(tx.r) - 1];
  if (found === undefined) throw new Error("no such sender");
  return found.address;
};

class Siege {
  /** Executable transactions that were answered, with what the pool last said of them. */
  private readonly promised = new Map<Hash32, SignedTransaction>();
  /** What was dropped, and must not be seen again unless it is sent again. */
  private readonly dropped = new Set<Hash32>();
  evictedCount = 0;
  unpayableCount = 0;

  constructor(private readonly fixture: Fixture) {}

  async run(next: Step): Promise<void> {
    const { state, mine, restart } = this.fixture;
    switch (next.kind) {
      case "submit":
        await this.submit(next.list);
        break;
      case "block":
        this.block(next.count, next.usedShare);
        break;
      case "rival": {
        // Another node's block: a transaction that this pool never saw takes nonce and coins.
        const several = [...this.fixture.pool.senders()].filter(
          ([, own]) => own.pending.length > 1,
        );
        const known = several[next.sender % Math.max(1, several.length)];
        const address = known === undefined ? account(1 + next.sender).address : known[0];
        const balanceAtoken = state.balanceAtoken(address);
        const valueAtoken = (balanceAtoken * BigInt(next.percent)) / 100n;
        state.balances.set(address, balanceAtoken - valueAtoken);
        state.nonces.set(address, state.nonce(address) + 1n);
        mine([], [address]);
        break;
      }
      case "deposit": {
        const { address } = SENDERS[next.sender] ?? account(1);
        state.balances.set(address, state.balanceAtoken(address) + 500_000n);
        mine([], [address]);
        break;
      }
      case "crash":
        await restart();
        break;
    }
    this.check();
  }

  private async submit(list: readonly Fields[]): Promise<void> {
    const { pool, state } = this.fixture;
    const before = new Map(this.all().map((tx) => [tx.hash, tx]));
    const sent = list.map((one) => {
      const { address } = SENDERS[one.sender] ?? account(1);
      return { tx: build(one, state.nonce(address)), isPeers: one.isPeers };
    });
    const calls = [true, false].map((isPeers) => {
      const raws = sent.filter((one) => one.isPeers === isPeers).map(({ tx }) => tx.raw);
      return pool.submit(raws, isPeers ? "peer" : "client");
    });
    await Promise.all(calls);
    for (const { tx } of sent) this.dropped.delete(tx.hash);
    this.checkEvictions(
      before,
      sent.map(({ tx }) => tx),
    );
  }

  /** Whoever made room had one of its own, at most as late, that paid no more than all that stay. */
  private checkEvictions(
    before: ReadonlyMap<Hash32, SignedTransaction>,
    sent: readonly SignedTransaction[],
  ): void {
    const { pool } = this.fixture;
    const gone = [...before.values(), ...sent].filter(({ hash }) => {
      const status = pool.status(hash);
      return status.status === "dropped" && status.reason === "underpriced";
    });
    if (gone.length === 0) return;
    this.evictedCount += gone.length;
    // A chain of several may have made room for more than one newcomer.
    const left = [...this.prices().values()]
      .filter(({ hash }) => before.has(hash))
      .map((tx) => effectiveGasPriceAtoken(tx));
    for (const tx of gone) {
      const earlier = gone.filter((one) => one.r === tx.r && one.nonce <= tx.nonce);
      const cheapest =
        earlier.map((one) => effectiveGasPriceAtoken(one)).toSorted(compare)[0] ?? 0n;
      expect(left.every((price) => price >= cheapest)).toBe(true);
    }
  }

  /** All transactions, queued ones included. */
  all(): SignedTransaction[] {
    const content = [...this.fixture.pool.senders()];
    return content.flatMap(([, { pending, queued }]) =>
      evmOnly([...pending, ...queued]).map(({ tx }) => tx),
    );
  }

  /** All executable transactions. */
  private prices(): Map<Hash32, SignedTransaction> {
    const all = [...this.fixture.pool.senders()].flatMap(([, { pending }]) => pending);
    return new Map(evmOnly(all).map(({ tx }) => [tx.hash, tx]));
  }

  /** Everything that is offered is valid in its turn, by the rules that execution asks. */
  private block(count: number, usedShare: number): void {
    const { pool, state, mined, journal } = this.fixture;
    const taken = drain(pool).slice(0, count);
    for (const { tx, from } of taken) {
      const balanceAtoken = state.balanceAtoken(from);
      const at = { nonce: state.nonce(from), balanceAtoken, hasCode: false };
      expect(executionFault(tx, from, at)).toBeUndefined();
      const gasUsed = 21_000n + ((tx.gasLimit - 21_000n) * BigInt(usedShare)) / 100n;
      const paidAtoken = gasUsed * effectiveGasPriceAtoken(tx) + tx.valueAtoken;
      state.balances.set(from, balanceAtoken - paidAtoken);
      state.nonces.set(from, tx.nonce + 1n);
      mined.set(tx.hash, { height: 1, index: 0, blockHash: tx.hash });
      journal.entries.delete(tx.hash);
      this.promised.delete(tx.hash);
    }
    allAtOnce(
      pool.onBlockCommitted({
        transactions: allAtOnce(minedTransactions(taken)),
        touched: taken.map(({ from }) => from),
      }),
    );
  }

  private check(): void {
    const { pool, state } = this.fixture;
    expect(pool.counts().pending + pool.counts().queued).toBeLessThanOrEqual(POOL_SIZE);
    for (const hash of this.dropped) {
      expect(["pending", "queued"]).not.toContain(pool.status(hash).status);
    }
    for (const [address, { pending, queued }] of pool.senders()) {
      expect(pending.map(({ tx }) => tx.nonce)).toEqual(
        pending.map((_, at) => state.nonce(address) + BigInt(at)),
      );
      const [first] = evmOnly(pending);
      const account0 = { nonce: state.nonce(address), hasCode: false };
      const balanceAtoken = state.balanceAtoken(address);
      if (first !== undefined) {
        expect(executionFault(first.tx, address, { ...account0, balanceAtoken })).toBeUndefined();
      }
      // What is due is executable: it never waits for coins that are not there.
      expect(queued.some(({ tx }) => first === undefined && tx.nonce === account0.nonce)).toBe(
        false,
      );
    }
    this.checkPromises();
  }

  /** Each has an end that is told, or goes on. */
  private checkPromises(): void {
    const { pool } = this.fixture;
    for (const hash of this.promised.keys()) {
      const status = pool.status(hash);
      if (status.status === "dropped") {
        expect(status.reason).toMatch(/^(underpriced$|insufficient funds|nonce too low|displaced)/);
        if (status.reason.startsWith("insufficient")) this.unpayableCount++;
        this.dropped.add(hash);
      }
      if (status.status === "dropped" || status.status === "replaced") this.promised.delete(hash);
      else expect(["pending", "queued"]).toContain(status.status);
    }
    const journalled = this.fixture.journal.entries;
    for (const tx of this.prices().values()) {
      if (journalled.has(tx.hash)) this.promised.set(tx.hash, tx);
    }
  }
}

function compare(left: bigint, right: bigint): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

describe("what was admitted", () => {
  it("can be included when its nonce is due, or is dropped with a reason", async () => {
    const seen = { evicted: 0, unpayable: 0 };
    const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const fixture = await createFixture({
        limits: { totalCount: POOL_SIZE, queuedCount: 2, guaranteedPerSender: 3 },
        recovery: { recover: async (list) => list.map(senderOf), verify: async () => [] },
      });
      for (const { address } of SENDERS) fixture.state.balances.set(address, 3_000_000n);
      const siege = new Siege(fixture);
      for (const next of steps) await siege.run(next);
      seen.evicted += siege.evictedCount;
      seen.unpayable += siege.unpayableCount;
      await fixture.pool.close();
      expect(fixture.faults).toEqual([]);
      const left = siege.all().map(({ hash }) => hash);
      const journalled = [...fixture.journal.entries.keys()];
      expect(journalled.filter((hash) => !left.includes(hash))).toEqual([]);
    });
    await fc.assert(property, { numRuns: 200, seed: SEED });
    expect(seen.evicted).toBeGreaterThan(10);
    expect(seen.unpayable).toBeGreaterThan(0);
  });
});
