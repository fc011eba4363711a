/** What is said of a deposit whose block the chain lost, and how much one plan undoes. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { present } from "../../../../chain/errors.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { explainTransaction } from "../../../../deposit-watcher/api/explanation.js";
import { entriesOfDeposit } from "../../../../ledger/deposits/deposit-evidence.js";
import { listEvents } from "../../../helpers/events.js";
import { planRewind, type RewindChain } from "../../../../ledger/recovery/older-chain.js";
import { applyRewind } from "../../../../ledger/recovery/rewind.js";
import { standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { derivation, Desk, destination, STRANGER, TOKEN, WALLET } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

/** Bob is paid 5 TOKEN behind the block `before`, and withdraws some of it. */
async function spendDeposit(amountAtoken: bigint) {
  const { address } = await desk.register("bob");
  await desk.watch();
  const before = desk.chain.head;
  const payment = desk.chain.payment(STRANGER, address, 5n * TOKEN);
  desk.chain.mine([payment]);
  desk.chain.mine();
  await desk.watch();
  await desk.request({ key: "b1", customer: "bob", to: destination(1), amountAtoken });
  await desk.work();
  await desk.watch();
  return { address, payment, before };
}

/** What the chain answers who plans to go back; it has none of the payments. */
function rewindChain(): RewindChain {
  return {
    headHeight: () => Promise.resolve(desk.chain.head),
    blockHash: (height) => Promise.resolve(desk.chain.blocks[height]?.hash),
    areMined: (hashes) => Promise.resolve(hashes.map(() => false)),
    nextNonce: () => Promise.resolve(0n),
    coinsAt: () => Promise.resolve(0n),
    unitsAt: () => Promise.resolve([]),
  };
}

describe("a deposit that was reversed", () => {
  it("is explained as that, with the entries that undid it", async () => {
    const { address } = await desk.register("bob");
    await desk.watch();
    const kept = desk.chain.head;
    desk.pay([address, TOKEN]);
    for (let block = 0; block < 3; block += 1) desk.chain.mine();
    await desk.watch();
    const [row] = await desk.database.query<{ id: string; tx_hash: string }>(
      `SELECT id, tx_hash FROM deposit WHERE customer_id = 'bob'`,
    );
    desk.chain.rollBack(kept);
    for (let block = 0; block < 12; block += 1) desk.chain.mine();
    await desk.watch();
    const chain = rewindChain();
    // More than a plan holds is refused, never cut: the cursor would go back over all of it.
    const cut = planRewind(desk.database, chain, { maxRows: 0 });
    await expect(cut).rejects.toMatchObject({ code: "RECOVERY" });
    expect((await planRewind(desk.database, chain, { maxRows: 1 }))?.deposits).toHaveLength(1);
    await desk.causeway("recover", "--apply");
    await desk.watch();
    expect(await desk.availableAtoken("bob")).toBe(0n);
    const nobody = () => Promise.reject(new Error("the ledger knows the answer"));
    const parts = {
      database: desk.database,
      node: {
        transactionStatus: nobody,
        getTransactionReceipt: nobody,
        getBlockHeader: nobody,
        blockJournal: nobody,
      },
      source: { block: nobody, close: () => undefined },
      watched: {
        customerOf: () => undefined,
        assetOf: () => undefined,
        walletFrom: () => undefined,
      },
    };
    const hash = parseHash32(row?.tx_hash);
    const { code, deposits } = await explainTransaction(parts, hash, { signal: desk.signal });
    expect([code, deposits.map(({ status }) => status)]).toEqual(["REVERSED", ["reversed"]]);
    const entries = await entriesOfDeposit(desk.database, row?.id ?? "");
    expect(entries.map(({ kind }) => kind)).toEqual(["deposit.credit", "deposit.reversal"]);
  });

  it("pays what its customer had taken of it when it is mined again, and gives the rest", async () => {
    const { payment, before: kept } = await spendDeposit(4n * TOKEN);
    for (let loss = 0; loss < 2; loss += 1) {
      await loseAbove(kept);
      expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([
        0n,
        4n * TOKEN,
      ]);
      desk.chain.mine([payment]);
      desk.chain.mine();
      await desk.watch();
      expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([TOKEN, 0n]);
      expect(await desk.breaks()).toBe("");
    }
  });

  it("pays nothing that its customer only asked for: what waits ends, and the hold goes with it", async () => {
    const { address } = await desk.register("bob");
    desk.pay([address, 2n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const kept = desk.chain.head;
    desk.pay([address, 5n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const ask = (key: string, amountAtoken: bigint) =>
      desk.request({ key, customer: "bob", to: destination(1), amountAtoken });
    const first = await ask("w1", TOKEN);
    const second = await ask("w2", 3n * TOKEN);
    const third = await ask("w3", 3n * TOKEN);
    const text = await loseAbove(kept);
    expect(text).toContain(second.id);
    await desk.causeway("withdrawals", "release");
    await desk.work();
    await desk.watch();
    // Two are there, and the first request asks for one of them.
    const statuses = [first, second, third].map(async ({ id }) => (await desk.read(id)).status);
    expect(await Promise.all(statuses)).toEqual(["settled", "rejected", "rejected"]);
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([TOKEN, 0n]);
    expect(await desk.breaks()).toBe("");
    // Who counts by events comes to the same balance.
    expect(await countedAtoken("bob")).toBe(TOKEN);
  });

  it("pays nothing that somebody is at work on while its coins vanish", async () => {
    const { address } = await desk.register("bob");
    await desk.watch();
    const kept = desk.chain.head;
    desk.pay([address, 5n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const fields = { customer: "bob", to: destination(1), amountAtoken: 5n * TOKEN };
    const waiting = await desk.request({ key: "w", ...fields });
    await desk.loseAbove(kept);
    let applied: Promise<{ readonly code: number }> | undefined;
    await standing(desk.database, async (tx) => {
      // As a worker that puts it off.
      await tx.query(`UPDATE withdrawal SET reason = 'waits' WHERE id = $1`, [waiting.id]);
      let isOver = false;
      applied = desk.causeway("recover", "--apply").finally(() => {
        isOver = true;
      });
      applied.catch(() => undefined);
      const blocked = `SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                        WHERE NOT l.granted AND a.datname = current_database()`;
      await until(async () => isOver || (await desk.database.query(blocked)).length > 0, {
        timeoutMs: 20_000,
        what: "the recovery waits for it, or has passed it by",
      });
      // As one that ends it: neither waits for the other for ever.
      await tx.query(`SELECT 1 FROM customer_balance WHERE customer_id = 'bob' FOR UPDATE`);
    });
    expect((await applied)?.code).toBe(0);
    expect((await desk.read(waiting.id)).status).toBe("rejected");
    desk.chain.mine();
    await desk.watch();
    await desk.causeway("withdrawals", "release");
    await desk.work();
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([0n, 0n]);
    expect(await desk.breaks()).toBe("");
  });

  it("takes of a customer only what it had given", async () => {
    const { address, payment, before: first } = await spendDeposit(5n * TOKEN);
    await loseAbove(first);
    desk.pay([address, 3n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const second = desk.chain.head;
    desk.chain.mine([payment]);
    desk.chain.mine();
    await desk.watch();
    expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([3n * TOKEN, 0n]);
    await loseAbove(second);
    // All of it had paid what was short: none of the three is of it.
    expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([
      3n * TOKEN,
      5n * TOKEN,
    ]);
    desk.chain.mine([payment]);
    desk.chain.mine();
    await desk.watch();
    expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([3n * TOKEN, 0n]);
    expect(await desk.breaks()).toBe("");
  });
});

describe("a deposit that lay in suspense on the chain that was lost", () => {
  /** Coins that were there before the address was given to bob. */
  async function foundCoins() {
    desk.chain.mine();
    const kept = desk.chain.head;
    const payment = desk.chain.payment(STRANGER, derivation.addressAt(0), 5n * TOKEN);
    desk.chain.mine([payment]);
    desk.chain.mine();
    await desk.watch();
    await desk.register("bob");
    await desk.watch();
    return { payment, kept };
  }

  const suspended = () =>
    desk.database.query<{ id: string }>(
      `SELECT id FROM deposit WHERE status = 'suspense' ORDER BY height`,
    );

  async function inSuspense(): Promise<bigint> {
    const [row] = await desk.database.query<{ units: string }>(
      `SELECT sum(CASE WHEN credit = 'liability:suspense' THEN amount_units ELSE -amount_units END)
              ::text AS units
         FROM posting WHERE 'liability:suspense' IN (debit, credit)`,
    );
    return BigInt(row?.units ?? "0");
  }

  async function assign(customer: string): Promise<void> {
    const [row] = await suspended();
    const to = ["--customer", customer, "--reason", "the sender asked"];
    await desk.causeway("ledger", "assign-deposit", row?.id ?? "", ...to);
  }

  it("goes there again, and is given to nobody else than the one a person named", async () => {
    const { payment, kept } = await foundCoins();
    await assign("alice");
    expect(await desk.availableAtoken("alice")).toBe(5n * TOKEN);
    await loseAbove(kept);
    expect(await desk.availableAtoken("alice")).toBe(0n);
    desk.chain.mine([payment]);
    for (let block = 0; block < 3; block += 1) desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("bob")).toBe(0n);
    await assign("alice");
    expect(await desk.availableAtoken("alice")).toBe(5n * TOKEN);
    expect(await desk.breaks()).toBe("");
  });

  it("takes of its customer only what a person had left of it", async () => {
    const { kept } = await foundCoins();
    const [row] = await suspended();
    const adjust = (key: string, debit: string, credit: string, ...more: string[]) => {
      const what = ["--key", key, "--debit", debit, "--credit", credit, ...more];
      const rest = ["--amount-atoken", String(2n * TOKEN), "--reason", "looked at the chain"];
      return desk.causeway("ledger", "adjust", ...what, ...rest);
    };
    const [suspense, lost] = ["liability:suspense", "expense:write_off"];
    await adjust("part", suspense, lost, "--deposit", row?.id ?? "");
    await assign("alice");
    expect(await desk.availableAtoken("alice")).toBe(3n * TOKEN);
    await loseAbove(kept);
    await desk.watch();
    expect(await desk.availableAtoken("alice")).toBe(0n);
    // What went elsewhere is named until a person takes it back.
    expect(await desk.breaks()).toContain("coins given out of suspense have come");
    await adjust("taken-back", lost, suspense);
    expect(await desk.breaks()).toBe("");
    expect(await desk.breakAtoken()).toBe(0n);
  });

  it.each([
    ["and was assigned", true],
    ["and was not assigned yet", false],
  ])("is not given again where a person had taken of it %s, mined again", async (_, isGiven) => {
    // Coins of somebody else lie there, too: they are nobody's who is given too much.
    await desk.watch();
    desk.pay([derivation.addressAt(1), 9n * TOKEN]);
    const { payment, kept } = await foundCoins();
    await desk.register("carol");
    await desk.watch();
    const lost = async () => (await suspended()).at(-1)?.id ?? "";
    const adjust = (key: string, id: string, amountAtoken: bigint) => {
      const sides = ["--debit", "liability:suspense", "--credit", "expense:write_off"];
      const what = ["--key", key, "--deposit", id, "--amount-atoken", `${amountAtoken}`];
      return desk.causeway("ledger", "adjust", ...what, ...sides, "--reason", "it was gas");
    };
    const assignLost = async () => {
      const to = ["--customer", "bob", "--reason", "the sender asked"];
      await desk.causeway("ledger", "assign-deposit", await lost(), ...to);
    };
    await adjust("part", await lost(), 2n * TOKEN);
    if (isGiven) await assignLost();
    await loseAbove(kept);
    expect(await desk.availableAtoken("bob")).toBe(0n);
    desk.chain.mine([payment]);
    for (let block = 0; block < 3; block += 1) desk.chain.mine();
    await desk.watch();
    if (!isGiven) {
      const all = adjust("too-much", await lost(), 4n * TOKEN);
      await expect(all).rejects.toMatchObject({ code: "INVALID_DECISION" });
      await assignLost();
    }
    expect(await desk.availableAtoken("bob")).toBe(3n * TOKEN);
    expect(await desk.breaks()).toBe("");
    expect(await inSuspense()).toBe(9n * TOKEN);
    // Nor is more taken for it when it is lost once more.
    await loseAbove(kept);
    expect(await desk.availableAtoken("bob")).toBe(0n);
    expect([await inSuspense(), await desk.breakAtoken()]).toEqual([7n * TOKEN, 0n]);
    desk.chain.mine([payment]);
    for (let block = 0; block < 3; block += 1) desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("bob")).toBe(3n * TOKEN);
    expect(await inSuspense()).toBe(9n * TOKEN);
    expect(await desk.breaks()).toBe("");
  });

  it("is taken back from whom a person gives it to while another one goes back", async () => {
    const { kept } = await foundCoins();
    await desk.loseAbove(kept);
    const plan = present(await planRewind(desk.database, rewindChain()), "a plan");
    await assign("alice");
    const going = applyRewind(desk.database, plan, "ann");
    await expect(going).rejects.toMatchObject({ code: "RECOVERY" });
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    expect(await desk.availableAtoken("alice")).toBe(0n);
    expect(await desk.breaks()).toBe("");
  });

  it("goes there again where nobody had decided", async () => {
    const { payment, kept } = await foundCoins();
    await loseAbove(kept);
    desk.chain.mine([payment]);
    for (let block = 0; block < 3; block += 1) desk.chain.mine();
    await desk.watch();
    expect([await desk.availableAtoken("bob"), (await suspended()).length]).toEqual([0n, 1]);
  });

  it("is its customer's at once where a person had said so", async () => {
    const { payment, kept } = await foundCoins();
    await assign("bob");
    await loseAbove(kept);
    desk.chain.mine([payment]);
    for (let block = 0; block < 3; block += 1) desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("bob")).toBe(5n * TOKEN);
    expect(await suspended()).toEqual([]);
    expect(await desk.breaks()).toBe("");
  });
});

describe("events of a deposit that a chain lost", () => {
  it("say at each moment what its customer's balance rose and fell by", async () => {
    const { address, payment, before: kept } = await spendDeposit(4n * TOKEN);
    expect(await countedAtoken("bob")).toBe(await desk.availableAtoken("bob"));
    for (let loss = 0; loss < 2; loss += 1) {
      await loseAbove(kept);
      expect(await countedAtoken("bob")).toBe(await desk.availableAtoken("bob"));
      desk.chain.mine([payment]);
      desk.chain.mine();
      await desk.watch();
      expect(await countedAtoken("bob")).toBe(TOKEN);
      expect(await desk.availableAtoken("bob")).toBe(TOKEN);
    }
    // One that was never credited takes nothing with it.
    const last = desk.chain.head;
    desk.pay([address, 7n]);
    await desk.watch();
    await loseAbove(last);
    expect(await countedAtoken("bob")).toBe(TOKEN);
    expect(await desk.availableAtoken("bob")).toBe(TOKEN);
  });
});

/** A balance as somebody counts it who reads nothing but events. */
async function countedAtoken(customer: string): Promise<bigint> {
  let sum = 0n;
  for (const { type, data } of await listEvents(desk.database, { afterSeq: 0, limit: 1_000 })) {
    if (data["customerId"] !== customer) continue;
    const atoken = (field: string) => BigInt(String(data[field]));
    if (type === "deposit.credited") sum += atoken("creditedAtoken");
    if (type === "deposit.reversed") sum -= atoken("debitedAtoken");
    if (type === "withdrawal.settled") sum -= atoken("amountAtoken");
  }
  return sum;
}

/** The chain comes back without the blocks above a height; payments of ours are mined again. */
async function loseAbove(height: number): Promise<string> {
  await desk.loseAbove(height);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  desk.chain.mine();
  await desk.watch();
  return text;
}

describe("coins that a person gave out of suspense, and whose block the chain lost", () => {
  it("are a break until a person takes them back", async () => {
    await desk.register("bob");
    await desk.watch();
    const kept = desk.chain.head;
    desk.pay([WALLET, 2n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const rest = ["--amount-atoken", String(2n * TOKEN), "--reason", "looked at the chain"];
    const adjust = (key: string, debit: string, credit: string) => {
      const sides = ["--debit", debit, "--credit", credit];
      return desk.causeway("ledger", "adjust", "--key", key, ...sides, ...rest);
    };
    const [suspense, bob] = ["liability:suspense", "liability:customer:bob"];
    await adjust("given", suspense, bob);
    expect(await desk.breaks()).toBe("");
    await loseAbove(kept);
    await desk.watch();
    expect(await desk.breaks()).toContain("coins given out of suspense have come");
    await adjust("taken-back", bob, suspense);
    expect(await desk.breaks()).toBe("");
  });
});
