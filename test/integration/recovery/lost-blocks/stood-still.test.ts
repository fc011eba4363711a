/** Processes and commands that stood still while a chain lost blocks and a person let the watcher go back. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { bytesToHex, parseHash32 } from "../../../../chain/hex.js";
import { signLegacy } from "../../../../chain/transaction.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** The watcher halts at a loss, and the chain comes back once more, shorter than it was. */
async function loseAbove(kept: number): Promise<void> {
  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine();
}

async function typed(...words: readonly string[]): Promise<void> {
  const { code, text } = await desk.causeway(...words);
  expect({ words, code, text: code === 0 ? "" : text }).toEqual({ words, code: 0, text: "" });
}

it("settles no payment by another block than the one that is recorded", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  const ledger = createLaneLedger(desk.workerDatabase);
  const elsewhereHash = parseHash32(`0x${"ab".repeat(32)}`);
  const elsewhere: number[] = [];
  const lane = desk.makeLane(
    WALLET,
    { signer: desk.rulesOf(KEY).signer, hasKey: () => true },
    {
      ledger: {
        ...ledger,
        settleSlots: async (receipts, terms) => {
          // As where this worker stood still, and another one's freeze was released behind it.
          for (const other of [{ blockHash: elsewhereHash }, { hash: elsewhereHash }]) {
            const read = receipts.map((receipt) => ({ ...receipt, ...other }));
            elsewhere.push((await ledger.settleSlots(read, terms)).size);
          }
          return ledger.settleSlots(receipts, terms);
        },
      },
    },
  );
  await desk.work(3, [lane]);
  expect(elsewhere).toEqual([0, 0]);
  expect((await desk.read(id)).status).toBe("settled");
});

it("settles no payment by a block that the chain lost between its receipt and the commit", async () => {
  const kept = desk.chain.head;
  for (let block = 0; block < 10; block += 1) desk.chain.mine();
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  const ledger = createLaneLedger(desk.workerDatabase);
  let isOver = false;
  const lane = desk.makeLane(
    WALLET,
    { signer: desk.rulesOf(KEY).signer, hasKey: () => true },
    {
      ledger: {
        ...ledger,
        settleSlots: async (receipts, terms) => {
          if (!isOver) {
            isOver = true;
            await desk.watch();
            await loseAbove(kept);
            await typed("recover", "--apply");
          }
          return ledger.settleSlots(receipts, terms);
        },
      },
    },
  );
  await desk.work(1, [lane]);
  await lane.runRound(desk.signal);
  expect([isOver, (await desk.read(id)).status]).toEqual([true, "included"]);
  // The recovery has sent its bytes again.
  desk.chain.mine();
  await desk.watch();
  await desk.work(3, [lane]);
  await typed("withdrawals", "release");
  await desk.work(2, [lane]);
  await desk.watch();
  const paid = await desk.read(id);
  expect([paid.status, paid.blockNumber]).toEqual(["settled", kept + 2]);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(desk.chain.head).toBeLessThan(kept + 10);
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
});

it("books no outflow that a person accepts while its block is gone back behind as if it stood", async () => {
  const kept = desk.chain.head;
  for (let block = 0; block < 10; block += 1) desk.chain.mine();
  const intent = { chainId: FAKE_CHAIN_ID, nonce: 0n, gasPriceAtoken: 30_000_000n };
  const rest = { gasLimit: 21_000n, to: destination(7), valueAtoken: 5n, data: new Uint8Array(0) };
  const raw = bytesToHex(signLegacy({ ...intent, ...rest }, KEY));
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  const [hash = ""] = desk.ownHashes();
  await loseAbove(kept);
  const waiting = async () =>
    (
      await desk.database.query(
        `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
          WHERE NOT granted AND datname = current_database()`,
      )
    ).length;
  const waits = (count: number, what: string) =>
    until(async () => (await waiting()) >= count, { timeoutMs: 20_000, what });
  let isBack = false;
  const commands: Promise<unknown>[] = [];
  await standing(desk.database, async (tx) => {
    // Whoever explains the transaction waits here, in the middle of a decision.
    await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 8084))`, [hash]);
    const accept = ["accept-outflow", hash, "--account", "expense:write_off"];
    commands.push(typed("ledger", ...accept, "--reason", "looked at the chain"));
    await waits(1, "the decision stands still");
    const back = typed("recover", "--apply").then(() => (isBack = true));
    commands.push(back);
    await until(async () => isBack || (await waiting()) >= 2, {
      timeoutMs: 20_000,
      what: "the watcher goes back, or waits for the decision",
    });
  });
  await Promise.all(commands);
  // Mined again, in a lower block.
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  expect(desk.chain.head).toBeLessThan(kept + 10);
  expect(desk.ownHashes()).toEqual([hash]);
  expect(await desk.breaks()).toBe("");
});
