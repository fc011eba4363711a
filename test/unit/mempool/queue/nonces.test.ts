/** Nonce order, gaps and replacement in the pool. */
import { describe, expect, it } from "@jest/globals";
import type { SignedTransaction } from "../../../../chain/transaction.js";
import { replacementPriceAtoken } from "../../../../chain/transaction-rules.js";
import {
  account,
  createFixture,
  drain,
  evmOnly,
  refusal,
  submit,
  transfer,
  TRANSFER_COST_ATOKEN,
} from "../support.js";

const alice = account(1);
const bob = account(2);
const hashes = (list: readonly { tx: SignedTransaction }[]) => list.map(({ tx }) => tx.hash);

describe("nonces", () => {
  it("queues behind a gap, names the missing nonce and promotes when it is filled", async () => {
    const { pool, announced } = await createFixture();
    const [first, second, fourth] = [0, 1, 3].map((nonce) => transfer(alice, nonce)) as [
      SignedTransaction,
      SignedTransaction,
      SignedTransaction,
    ];
    await submit(pool, second, fourth);
    expect(pool.counts()).toEqual({ pending: 0, queued: 2 });
    expect(pool.status(second.hash)).toEqual({ status: "queued", missingNonce: 0n });
    expect(pool.pendingNonce(alice.address)).toBe(0n);
    expect(announced).toEqual([]);

    await submit(pool, first);
    expect(pool.status(second.hash)).toEqual({ status: "pending" });
    expect(pool.status(fourth.hash)).toEqual({ status: "queued", missingNonce: 2n });
    expect(pool.pendingNonce(alice.address)).toBe(2n);
    expect(announced).toEqual([first.hash, second.hash]);
    expect(hashes(evmOnly(pool.contentFrom(alice.address).pending))).toEqual([
      first.hash,
      second.hash,
    ]);
    expect(hashes(evmOnly(pool.contentFrom(alice.address).queued))).toEqual([fourth.hash]);
    expect(new Map(pool.senders()).get(alice.address)).toEqual(pool.contentFrom(alice.address));
    expect(hashes(drain(pool))).toEqual([first.hash, second.hash]);
  });

  it("accepts one call with nonces in any order", async () => {
    const { pool } = await createFixture();
    const list = [4, 2, 0, 3, 1].map((nonce) => transfer(alice, nonce));
    await submit(pool, ...list);
    expect(pool.counts()).toEqual({ pending: 5, queued: 0 });
    expect(drain(pool).map(({ tx }) => Number(tx.nonce))).toEqual([0, 1, 2, 3, 4]);
  });

  it("knows nothing of an unknown account or hash", async () => {
    const { pool, state } = await createFixture();
    state.nonces.set(bob.address, 7n);
    expect(pool.pendingNonce(bob.address)).toBe(7n);
    expect(pool.contentFrom(bob.address)).toEqual({ pending: [], queued: [] });
    expect(pool.get(transfer(bob, 0).hash)).toBeUndefined();
    expect(pool.status(transfer(bob, 0).hash)).toEqual({ status: "unknown" });
  });

  it("keeps a queued transaction queued while the funds do not reach for it", async () => {
    const { pool, state, mine } = await createFixture();
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN + 10n);
    const [first, second] = [transfer(alice, 0), transfer(alice, 1)];
    await submit(pool, second);
    await submit(pool, first);
    expect(pool.status(first.hash)).toEqual({ status: "pending" });
    expect(pool.status(second.hash)).toEqual({
      status: "queued",
      missingNonce: 1n,
      reason:
        "insufficient funds for gas * price + value: balance 210011, queued cost 210001, " +
        "tx cost 210001, overshot 209991",
    });
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN * 2n);
    mine([], [alice.address]);
    expect(pool.status(second.hash)).toEqual({ status: "pending" });
  });
});

describe("replacement", () => {
  it("takes 10 % more, rounded down as wallets reckon it", async () => {
    const { pool } = await createFixture();
    const first = transfer(alice, 0, { priceAtoken: 19n });
    const cheap = transfer(alice, 0, { priceAtoken: 19n, valueAtoken: 2n });
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    expect(await submit(pool, first)).toEqual([first.hash]);
    const [refused] = await submit(pool, cheap);
    expect(refusal(refused).code).toBe("REPLACEMENT_UNDERPRICED");
    expect(await submit(pool, dear)).toEqual([dear.hash]);
    expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
  });

  it("is offered for 10 % more, rounded up and at least 1", () => {
    expect([1n, 9n, 10n, 11n, 25_000_000n].map((price) => replacementPriceAtoken(price))).toEqual([
      2n,
      10n,
      11n,
      13n,
      27_500_000n,
    ]);
  });

  it("refuses less and accepts exactly that much, and says what replaced what", async () => {
    const { pool, announced, journal } = await createFixture();
    const first = transfer(alice, 0, { priceAtoken: 100n });
    const after = transfer(alice, 1, { priceAtoken: 100n });
    const cheap = transfer(alice, 0, { priceAtoken: 109n });
    const dear = transfer(alice, 0, { priceAtoken: 110n });
    await submit(pool, first, after);
    const [refused] = await submit(pool, cheap);
    expect(refusal(refused)).toEqual({
      code: "REPLACEMENT_UNDERPRICED",
      message: "replacement transaction underpriced",
    });
    expect(await submit(pool, dear)).toEqual([dear.hash]);
    expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
    expect(pool.get(first.hash)).toBeUndefined();
    expect(pool.status(after.hash)).toEqual({ status: "pending" });
    expect(hashes(drain(pool))).toEqual([dear.hash, after.hash]);
    expect(announced).toEqual([first.hash, after.hash, dear.hash]);
    await pool.close();
    expect([...journal.entries.keys()].toSorted()).toEqual([after.hash, dear.hash].toSorted());
  });

  it("replaces queued ones too, also within one call", async () => {
    const { pool, announced } = await createFixture();
    const first = transfer(alice, 1, { priceAtoken: 10n });
    const dear = transfer(alice, 1, { priceAtoken: 11n });
    const filler = transfer(alice, 0);
    expect(await submit(pool, first, dear, filler)).toEqual(
      [first, dear, filler].map((t) => t.hash),
    );
    expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
    expect(pool.counts()).toEqual({ pending: 2, queued: 0 });
    expect(announced).toEqual([filler.hash, dear.hash]);
  });

  it("counts the replaced cost as free", async () => {
    const { pool, state } = await createFixture();
    state.balances.set(alice.address, 231_001n);
    const answers = await submit(
      pool,
      transfer(alice, 0),
      transfer(alice, 0, { priceAtoken: 11n }),
    );
    expect(answers.every((answer) => typeof answer === "string")).toBe(true);
  });

  it("counts the new cost from then on", async () => {
    const { pool, state } = await createFixture();
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN * 3n);
    const answers = await submit(
      pool,
      transfer(alice, 0),
      transfer(alice, 0, { priceAtoken: 21n }),
      transfer(alice, 1),
    );
    expect(refusal(answers[2]).message).toBe(
      "insufficient funds for gas * price + value: balance 630003, queued cost 441001, " +
        "tx cost 210001, overshot 20999",
    );
  });

  it("announces only the last of one call's transactions with one nonce", async () => {
    const { pool, announced } = await createFixture();
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    await submit(pool, transfer(alice, 0), dear);
    expect(announced).toEqual([dear.hash]);
  });

  it("a replaced transaction may come back only by outbidding", async () => {
    const { pool } = await createFixture();
    const first = transfer(alice, 0, { priceAtoken: 10n });
    await submit(pool, first, transfer(alice, 0, { priceAtoken: 20n }));
    const [again] = await submit(pool, first);
    expect(refusal(again).code).toBe("REPLACEMENT_UNDERPRICED");
  });
});
