/** What a block is offered, and what the pool does once the block is committed. */
import { NEWEST_WEIGHTS } from "../../../chain/evm/compute-weights.js";
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import type { SignedTransaction } from "../../../chain/transaction.js";
import { dataBytesOf } from "../../../chain/consensus/consensus-params.js";
import { largestTransaction } from "../../../node/mempool/admission/largest-transaction.js";
import { SDK_OVERHEAD_BYTES } from "../../../node/mempool/order/ordering.js";
import { consensusParamsOf } from "../../../node/settings/genesis.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import {
  account,
  createFixture,
  drain,
  RECIPIENT,
  submit,
  TRANSFER_COST_ATOKEN,
  transfer,
} from "./support.js";

const alice = account(1);
const bob = account(2);
const carol = account(3);
const CONTRACT = `0x${"cc".repeat(20)}` as Address;

const hashes = (list: readonly { tx: SignedTransaction }[]) => list.map(({ tx }) => tx.hash);
const price = (priceAtoken: bigint) => ({ priceAtoken });
const unlimited = {
  maxGas: 10n ** 12n,
  maxComputeNs: 1e12,
  computeWeights: NEWEST_WEIGHTS,
  maxBytes: 1e9,
};

describe("order", () => {
  it("is by price between senders, nonce within one, receipt where prices are equal", async () => {
    const { pool } = await createFixture();
    const [a0, a1, b0, b1, c0] = [
      transfer(alice, 0, price(10n)),
      transfer(alice, 1, price(500n)),
      transfer(bob, 0, price(20n)),
      transfer(bob, 1, price(10n)),
      transfer(carol, 0, price(10n)),
    ] as const;
    await submit(pool, c0);
    await submit(pool, a1, b1, b0, a0);
    // b1 was received before a0 but after c0; a1 is dear but must wait for a0.
    expect(hashes(drain(pool))).toEqual([b0, c0, b1, a0, a1].map(({ hash }) => hash));
  });

  it("holds for hundreds of senders with mixed prices", async () => {
    const { pool } = await createFixture();
    const list = Array.from({ length: 300 }, (_, n) =>
      transfer(account(100 + n), 0, { priceAtoken: BigInt(1 + ((n * 7_919) % 50)) }),
    );
    await submit(pool, ...list);
    const expected = list
      .map((tx, at) => ({ tx, at }))
      .toSorted((x, y) => Number(y.tx.maxFeePerGasAtoken - x.tx.maxFeePerGasAtoken) || x.at - y.at);
    expect(hashes(drain(pool))).toEqual(hashes(expected));
  });

  it("takes nothing out of the pool", async () => {
    const { pool } = await createFixture();
    await submit(pool, transfer(alice, 0), transfer(bob, 0));
    expect(drain(pool)).toHaveLength(2);
    expect(drain(pool)).toHaveLength(2);
  });

  it("follows a replacement that comes while the block is built", async () => {
    const { pool } = await createFixture();
    const [a0, b0] = [transfer(alice, 0, { priceAtoken: 30n }), transfer(bob, 0)];
    const dear = transfer(bob, 0, { priceAtoken: 20n });
    await submit(pool, a0, b0);
    const selection = pool.takeForBlock(unlimited);
    expect(selection.next()?.tx.hash).toBe(a0.hash);
    await submit(pool, dear, transfer(alice, 1));
    expect(selection.next()?.tx.hash).toBe(dear.hash);
    expect(selection.next()?.tx.nonce).toBe(1n);
    expect(selection.next()).toBeUndefined();
  });
});

describe("room in a block", () => {
  it("counts gas limits, or the gas that was really used", async () => {
    const { pool } = await createFixture();
    const list = [0, 1, 2].map((nonce) => transfer(alice, nonce, { gasLimit: 50_000n }));
    await submit(pool, ...list);
    expect(drain(pool, { maxGas: 100_000n })).toHaveLength(2);
    const selection = pool.takeForBlock({ ...unlimited, maxGas: 92_000n });
    let taken = 0;
    while (selection.next() !== undefined) {
      selection.executed({ gasUsed: 21_000n, computeNs: 1 });
      taken++;
    }
    expect(taken).toBe(3);
  });

  it("goes on with other senders when one does not fit", async () => {
    const { pool } = await createFixture();
    const big = transfer(alice, 0, { gasLimit: 90_000n, priceAtoken: 50n });
    const list = [transfer(bob, 0), transfer(carol, 0), big, transfer(alice, 1)];
    await submit(pool, ...list);
    const taken = drain(pool, { maxGas: 100_000n });
    expect(taken.map(({ from }) => from)).toEqual([alice.address]);
    const without = drain(pool, { maxGas: 89_000n });
    expect(without.map(({ from }) => from)).toEqual([bob.address, carol.address]);
  });

  it("counts the compute units that were used", async () => {
    const { pool } = await createFixture();
    await submit(pool, transfer(alice, 0), transfer(bob, 0), transfer(carol, 0));
    const selection = pool.takeForBlock({ ...unlimited, maxComputeNs: 1_000_000 });
    expect([selection.next()?.from, selection.computeLeftNs]).toEqual([alice.address, 1_000_000]);
    selection.executed({ gasUsed: 21_000n, computeNs: 900_000 });
    expect([selection.next()?.from, selection.computeLeftNs]).toEqual([bob.address, 100_000]);
    selection.executed({ gasUsed: 21_000n, computeNs: 99_999 });
    expect(selection.next()).toBeUndefined();
  });

  it("limits the bytes of the SDK transactions", async () => {
    const { pool } = await createFixture();
    await submit(pool, transfer(alice, 0), transfer(alice, 1), transfer(bob, 0));
    const each = transfer(alice, 0).raw.length + SDK_OVERHEAD_BYTES;
    expect(drain(pool, { maxBytes: 2 * each + 10 })).toHaveLength(2);
  });

  it("allows for the largest wrapping of a transaction", () => {
    for (const size of [0, 200, 130_000]) {
      const tx = {
        ...transfer(alice, 0, { data: new Uint8Array(size) }),
        gasLimit: 2n ** 64n - 1n,
        maxFeePerGasAtoken: 2n ** 256n - 1n,
        maxPriorityFeePerGasAtoken: 2n ** 256n - 1n,
      };
      const overhead = encodeSdkTransaction(tx, alice.address).length - tx.raw.length;
      expect(overhead).toBeLessThanOrEqual(SDK_OVERHEAD_BYTES);
    }
  });

  it("has room for each that the pool takes, whatever the genesis allows a single one", async () => {
    const genesis = testGenesis(alice.address);
    const params = { ...genesis.params, maxGas: 100_000n, maxBytes: 8_192 };
    const rules = largestTransaction({ ...genesis, params });
    const { pool, mine, journal, restart } = await createFixture({ rules });
    const sized = (from: typeof alice, sizeBytes: number) => {
      const tx = (dataBytes: number) =>
        transfer(from, 0, { gasLimit: 60_000n, data: new Uint8Array(dataBytes) });
      return tx(6_000 + sizeBytes - tx(6_000).raw.length);
    };
    const mostBytes = rules.maxTransactionBytes;
    const [large, tooLarge] = [sized(bob, mostBytes), sized(carol, mostBytes + 1)];
    const costly = transfer(alice, 0, { gasLimit: 100_000n });
    const answers = await submit(
      pool,
      costly,
      transfer(carol, 0, { gasLimit: 100_001n }),
      large,
      tooLarge,
    );
    expect(answers).toEqual([
      costly.hash,
      expect.objectContaining({ code: "GAS_LIMIT_EXCEEDED" }),
      large.hash,
      expect.objectContaining({ code: "TRANSACTION_TOO_LARGE" }),
    ]);
    const room = { maxGas: 100_000n, maxBytes: dataBytesOf(consensusParamsOf(params), 1, 0) };
    for (const tx of [costly, large]) {
      expect(hashes(drain(pool, room))).toEqual([tx.hash]);
      mine(drain(pool, room));
    }
    // An older version took it.
    const receipt = { from: carol.address, receivedAtMs: 0, sequence: 9 };
    journal.entries.set(tooLarge.hash, { hash: tooLarge.hash, raw: tooLarge.raw, ...receipt });
    expect((await restart()).status(tooLarge.hash)).toMatchObject({ status: "dropped" });
  });

  it("gives the room of a skipped transaction to others and leaves its sender out", async () => {
    const { pool } = await createFixture();
    await submit(pool, transfer(alice, 0), transfer(alice, 1), transfer(bob, 0));
    const maxBytes = transfer(alice, 0).raw.length + SDK_OVERHEAD_BYTES + 10;
    const selection = pool.takeForBlock({ ...unlimited, maxGas: 21_000n, maxBytes });
    expect(selection.next()?.from).toBe(alice.address);
    selection.skipSender(alice.address);
    expect(selection.next()?.from).toBe(bob.address);
    expect(selection.next()).toBeUndefined();
    const other = pool.takeForBlock(unlimited);
    expect(other.next()?.from).toBe(alice.address);
    other.skipSender(bob.address);
    expect(other.next()?.tx.nonce).toBe(1n);
    expect(other.next()).toBeUndefined();
  });
});

describe("a committed block", () => {
  it("takes out what it included and tells where it is", async () => {
    const { pool, mine, journal } = await createFixture();
    const list = [transfer(alice, 0), transfer(alice, 1), transfer(bob, 0)];
    await submit(pool, ...list);
    const [first, second] = drain(pool);
    if (first === undefined || second === undefined) throw new Error("two were expected");
    mine([first, second]);
    expect(pool.status(first.tx.hash)).toEqual({ status: "included", height: 1, index: 0 });
    expect(pool.status(second.tx.hash)).toEqual({ status: "included", height: 1, index: 1 });
    expect(pool.counts()).toEqual({ pending: 1, queued: 0 });
    expect(journal.entries.size).toBe(1);
    expect(journal.removals).toEqual([]);
    mine(drain(pool));
    expect(pool.counts()).toEqual({ pending: 0, queued: 0 });
    expect(pool.stats()).toMatchObject({ sizeBytes: 0, droppedTotal: 0, admittedTotal: 3 });
  });

  it("answers a mined transaction with nonce too low", async () => {
    const { pool, mine } = await createFixture();
    const tx = transfer(alice, 0);
    await submit(pool, tx);
    mine(drain(pool));
    const [answer] = await submit(pool, tx);
    expect(answer).toMatchObject({ code: "NONCE_TOO_LOW" });
    expect(pool.status(tx.hash).status).toBe("included");
  });

  it("reports a rival at the same nonce as what replaced", async () => {
    const { pool, mine, journal } = await createFixture();
    const own = transfer(alice, 0);
    const rival = transfer(alice, 0, { valueAtoken: 9n });
    await submit(pool, own);
    mine([{ tx: rival, from: alice.address }]);
    expect(pool.status(own.hash)).toEqual({ status: "replaced", by: rival.hash });
    expect(pool.status(rival.hash).status).toBe("included");
    await pool.close();
    expect(journal.entries.size).toBe(0);
  });

  it("included wins over replaced when the replaced one was already in the block", async () => {
    const { pool, mine } = await createFixture();
    const first = transfer(alice, 0);
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    await submit(pool, first);
    const taken = drain(pool);
    await submit(pool, dear);
    mine(taken);
    expect(pool.status(first.hash).status).toBe("included");
    expect(pool.status(dear.hash)).toEqual({ status: "replaced", by: first.hash });
  });

  it("drops the first one that the balance no longer covers and queues those after", async () => {
    const { pool, state, mine } = await createFixture();
    const dear = transfer(alice, 1, { valueAtoken: 1_000_000n });
    const [first, third] = [transfer(alice, 0), transfer(alice, 2)];
    await submit(pool, first, dear, third);
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN * 2n);
    mine([], [alice.address]);
    expect(pool.status(first.hash)).toEqual({ status: "pending" });
    expect(pool.status(dear.hash)).toEqual({
      status: "dropped",
      reason:
        "insufficient funds for gas * price + value: balance 420002, tx cost 1210000, " +
        "overshot 789998",
    });
    expect(pool.status(third.hash)).toEqual({ status: "queued", missingNonce: 1n });
    await submit(pool, transfer(alice, 1, { valueAtoken: 0n }));
    expect(pool.counts()).toEqual({ pending: 2, queued: 1 });
  });

  it("promotes what a nonce from elsewhere makes executable, passes what it overtook", async () => {
    const { pool, mine, announced } = await createFixture();
    const overtaken = transfer(alice, 2);
    const next = transfer(alice, 5);
    await submit(pool, overtaken, next);
    mine(
      [0, 1, 2, 3, 4].map((nonce) => ({
        tx: transfer(alice, nonce, { to: CONTRACT }),
        from: alice.address,
      })),
    );
    expect(pool.status(overtaken.hash).status).toBe("replaced");
    expect(pool.status(next.hash)).toEqual({ status: "pending" });
    expect(announced).toEqual([next.hash]);
  });

  it("drops on request what cannot be executed", async () => {
    const { pool, journal } = await createFixture();
    const list = [transfer(alice, 0), transfer(alice, 1)];
    await submit(pool, ...list);
    pool.drop(transfer(alice, 0).hash, "the transaction cannot be executed");
    pool.drop(transfer(bob, 0).hash, "it is not in the pool");
    expect(list.map(({ hash }) => pool.status(hash))).toEqual([
      { status: "dropped", reason: "the transaction cannot be executed" },
      { status: "queued", missingNonce: 0n },
    ]);
    expect(pool.status(transfer(bob, 0).hash)).toEqual({ status: "unknown" });
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([transfer(alice, 1).hash]);
  });

  it("reads the state only of senders that the block touched", async () => {
    const { pool, state, mine } = await createFixture();
    await submit(pool, transfer(alice, 0), transfer(bob, 0));
    const read = new Set<Address>();
    const nonce = state.nonce.bind(state);
    state.nonce = (address) => {
      read.add(address);
      return nonce(address);
    };
    mine(
      drain(pool).filter(({ from }) => from === alice.address),
      [RECIPIENT],
    );
    expect([...read]).toEqual([alice.address]);
  });
});
