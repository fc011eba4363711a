/** A second loss, and a chain that lost the transfer that cancelled a payment. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { bytesToHex, parseHash32 } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import { approve as carryOut } from "../../../ledger/decisions/decision-log.js";
import { appendEvents } from "../../../ledger/events.js";
import { freezeDoubted } from "../../../ledger/requests/unexplained-outflows.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { standing } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { Desk, destination, KEY, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const FIELDS = { customer: "alice", to: destination(1), amountAtoken: TOKEN };

/** A request that equals a payment which the ledger lost and a recovery found. */
async function frozenBesideLost() {
  const first = await desk.backup();
  await desk.request({ key: "lost", ...FIELDS });
  await desk.work();
  await desk.register("bob");
  await desk.useDatabase(first);
  await desk.watch();
  await desk.causeway("recover", "--apply");
  await desk.watch();
  const other = await desk.request({ key: "other", ...FIELDS });
  await desk.work(1);
  return other;
}

/** The same where two persons decide. */
function frozenForTwoPersons() {
  desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
  return frozenBesideLost();
}

describe("a second loss", () => {
  it("pays nothing again that a person cleared in the first one", async () => {
    const other = await frozenBesideLost();
    expect((await desk.read(other.id)).status).toBe("frozen");
    await desk.causeway("ledger", "pay-withdrawal", other.id, "--reason", "a new order");
    const second = await desk.backup();
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
    await desk.register("carol");
    await desk.useDatabase(second);
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    await desk.work();
    // Two requests, two payments.
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
    expect((await desk.read(other.id)).status).toBe("frozen");
    // A person may say so again, who knows of the second payment.
    await desk.causeway("ledger", "pay-withdrawal", other.id, "--reason", "still another one");
    await desk.work();
    expect((await desk.read(other.id)).status).toBe("settled");
    expect(desk.paidAtoken(destination(1))).toBe(3n * TOKEN);
  });

  it("pays nothing again by a second person's word that was proposed before it", async () => {
    const other = await frozenForTwoPersons();
    const pay = [
      "ledger",
      "pay-withdrawal",
      other.id,
      "--operator",
      "ann",
      "--reason",
      "a new one",
    ];
    await desk.causeway(...pay);
    const second = await desk.backup();
    const approve = (id: string) => desk.causeway("ledger", "approve", id, "--operator", "bea");
    await approve("1");
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
    // The approval is lost with the payment, and the proposal waits again.
    await desk.register("carol");
    await desk.useDatabase(second);
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    await expect(approve("1")).rejects.toMatchObject({
      code: "INVALID_DECISION",
      message: expect.stringContaining("before the last recovery"),
    });
    await desk.work();
    expect((await desk.read(other.id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
    await desk.causeway("ledger", "refuse", "1", "--operator", "bea");
    await desk.causeway(...pay);
    await approve("2");
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(3n * TOKEN);
  });
});

describe("a second person's word", () => {
  it("carries out no proposal of before a recovery, which may have been settled since", async () => {
    desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
    const adjust = (key: string, ...block: string[]) => {
      const sides = ["--debit", "equity:adjustment", "--credit", "liability:customer:alice"];
      const terms = ["--key", key, ...sides, "--amount-atoken", "7", ...block];
      return desk.causeway("ledger", "adjust", ...terms, "--operator", "ann", "--reason", "owed");
    };
    const settle = (word: string, id: string) =>
      desk.causeway("ledger", word, id, "--operator", "bea");
    await adjust("right");
    await adjust("wrong");
    const backup = await desk.backup();
    const height = desk.chain.head;
    await settle("approve", "1");
    await settle("refuse", "2");
    desk.chain.mine();
    await desk.watch();
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();

    // One would count from now on, and the other one was refused: the ledger has lost both words.
    for (const id of ["1", "2"]) {
      await expect(settle("approve", id)).rejects.toMatchObject({
        code: "INVALID_DECISION",
        message: expect.stringContaining(`decision ${id} was proposed before the last recovery`),
      });
      await settle("refuse", id);
    }
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    await adjust("right", "--block", `${height}`);
    await settle("approve", "3");
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN + 7n);
    const rows = await desk.database.query(
      `SELECT effective_height::integer AS height FROM journal_entry
        WHERE idem_key = 'adjustment:right'`,
    );
    expect(rows).toEqual([{ height }]);
  });

  it("pays nothing that a transaction may have paid which was seen behind the proposal", async () => {
    const other = await frozenForTwoPersons();
    const who = ["--operator", "ann", "--reason", "a new one"];
    await desk.causeway("ledger", "pay-withdrawal", other.id, ...who);
    // Somebody pays it by hand, and another one lets the wallet go on.
    const intent = { chainId: FAKE_CHAIN_ID, nonce: 1n, gasPriceAtoken: 30_000_000n };
    const rest = { to: destination(1), valueAtoken: TOKEN, gasLimit: 21_000n };
    desk.chain.submit(bytesToHex(signLegacy({ ...intent, ...rest, data: new Uint8Array(0) }, KEY)));
    desk.chain.mine();
    await desk.watch();
    await desk.work(2);
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    expect((await desk.read(other.id)).reason).toContain("also: ");
    const approve = (id: string) => desk.causeway("ledger", "approve", id, "--operator", "bea");
    await expect(approve("1")).rejects.toThrow("decision 1 was proposed before");
    await desk.work();
    expect((await desk.read(other.id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
    // Whoever has heard of both may say so.
    await desk.causeway("ledger", "refuse", "1", "--operator", "bea");
    await desk.causeway("ledger", "pay-withdrawal", other.id, ...who);
    await approve("2");
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(3n * TOKEN);
  });

  it("is not carried out over a cause that comes behind the look at what it is about", async () => {
    const other = await frozenForTwoPersons();
    const who = ["--operator", "ann", "--reason", "a new one"];
    await desk.causeway("ledger", "pay-withdrawal", other.id, ...who);
    const { database } = desk;
    const hash = parseHash32(`0x${"0d".repeat(32)}`);
    let doubted: Promise<unknown> | undefined;
    const doubt = () =>
      database.transaction(async (tx) => {
        const { events } = await freezeDoubted(
          tx,
          [{ id: other.id, hash }],
          (hashes) => `${hashes} may have paid it`,
        );
        await appendEvents(tx, events);
      });
    const isOver = async () => {
      const waiting = await database.query(
        `SELECT 1 FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      const [told] = await database.query(`SELECT 1 FROM withdrawal_doubt WHERE tx_hash = $1`, [
        hash,
      ]);
      return waiting.length > 0 || told !== undefined;
    };
    const between: SqlDatabase = {
      ...database,
      query: (text, values) => database.query(text, values),
      transaction: (work) =>
        standing(database, (tx) =>
          work({
            async query(text, values) {
              const rows = await tx.query(text, values);
              if (!text.includes("sha256(convert_to")) return rows as never;
              doubted ??= doubt();
              await until(isOver, { timeoutMs: 10_000, what: "it is told, or waits" });
              return rows as never;
            },
          }),
        ),
    };
    const chain = {
      hasDone: async () => true,
      blockOf: async () => undefined,
      paidBy: async () => undefined,
    };
    await carryOut(between, { id: 1, operator: "bea" }, chain);
    await doubted;
    expect(await desk.read(other.id)).toMatchObject({
      status: "frozen",
      reason: expect.stringContaining(hash),
    });
  });
});

describe("a second loss of the chain", () => {
  it("has a payment mined once more that was made again after the first one", async () => {
    const { address } = await desk.register("bob");
    await desk.watch();
    const kept = desk.chain.head;
    await desk.request({ key: "p", ...FIELDS });
    await desk.work();
    await desk.watch();
    const [hash = ""] = desk.ownHashes();
    desk.chain.unmined.add(destination(1));
    await loseAbove(kept);
    // Blocks of ours that stay, above the one where it was mined first.
    for (let block = 0; block < 4; block += 1) desk.pay([address, 7n]);
    await desk.watch();
    const stays = desk.chain.head;
    desk.chain.unmined.clear();
    desk.chain.mine();
    await desk.watch();
    expect(desk.ownHashes()).toEqual([hash]);
    expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
    const { text } = await loseAbove(stays);
    expect(text).toContain(`sent again: ${hash}: sent`);
    desk.chain.mine();
    await desk.watch();
    expect([desk.ownHashes(), desk.paidAtoken(destination(1))]).toEqual([[hash], TOKEN]);
    expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
    await desk.request({ key: "next", ...FIELDS });
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
  });
});

it("goes back no further than the blocks that the second loss took", async () => {
  const { address } = await desk.register("bob");
  await desk.watch();
  const kept = desk.chain.head;
  await desk.request({ key: "p", ...FIELDS });
  await desk.work();
  await desk.watch();
  // The payment goes on naming the block of the chain that was lost first.
  await loseAbove(kept);
  desk.chain.mine();
  await desk.watch();
  expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
  desk.pay([address, 7n]);
  desk.chain.mine();
  const stays = desk.chain.head;
  desk.chain.mine();
  await desk.watch();
  expect(await desk.availableAtoken("bob")).toBe(7n);
  await loseAbove(stays);
  await desk.watch();
  const rows = await desk.database.query(
    `SELECT status, count(*)::integer AS count FROM deposit WHERE customer_id = 'bob' GROUP BY status`,
  );
  expect(rows).toEqual([{ status: "credited", count: 1 }]);
  expect(await desk.availableAtoken("bob")).toBe(7n);
});

/** The chain comes back without the blocks above a height, and a person recovers. */
async function loseAbove(height: number): Promise<{ readonly text: string }> {
  await desk.loseAbove(height);
  await desk.work(3);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  return { text };
}

describe("a chain without the transfer that cancelled", () => {
  it("does not let the payment be mined in its place unseen", async () => {
    const kept = desk.chain.head;
    const { wanted, payment } = await desk.cancelOnTheWay(FIELDS);
    expect((await desk.read(wanted.id)).status).toBe("cancelled");
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    // Another validator's pool kept the payment.
    desk.chain.rollBack(kept);
    desk.chain.unmined.clear();
    desk.chain.submit(payment);
    for (let block = 0; block < 12; block += 1) desk.chain.mine();
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    await desk.work(3);
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    // Paid, and given back as well.
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    const { isFrozen } = desk.lane().status();
    const open = await desk.causeway("ledger", "open");
    const recover = await desk.causeway("recover");
    // Whatever is done about it: somebody is told, or nothing more is signed.
    expect({ isFrozen, open: open.text, recover: recover.text }).not.toMatchObject({
      isFrozen: false,
      open: "Nothing waits for a person.",
    });
  });
});
