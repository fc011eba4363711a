/** A token that another process stores while this watcher has looked at blocks that move it, and not booked them. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { registerTokens } from "../../../../ledger/assets/asset-registry.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../../ledger/deposits/deposit-queries.js";
import { callOf, TokenBench, TOKENS } from "../token-bench.js";

let bench: TokenBench;

beforeEach(async () => {
  bench = await TokenBench.open();
  await bench.deploy();
});
afterEach(() => bench.close());

it("counts in these blocks: they are looked at again", async () => {
  await bench.watch(TOKENS.filter(({ symbol }) => symbol !== "PLAIN"));
  const alice = await bench.register("alice");
  await bench.caughtUp();
  const node = { ...bench.node };
  let isStored = false;
  Object.assign(bench.node, {
    transferLogs: async (...asked: Parameters<typeof node.transferLogs>) => {
      const logs = await node.transferLogs(...asked);
      if (!isStored && logs.length > 0) {
        isStored = true;
        await registerTokens(bench.ledger.owner, TOKENS);
      }
      return logs;
    },
  });
  await bench.mine([callOf("PlainToken", "mint", [alice, 70n])]);
  await bench.mine([]);
  await bench.caughtUp();
  expect(isStored).toBe(true);
  const balances = await customerBalances(bench.database, parseCustomerId("alice"));
  expect(balances?.find(({ asset }) => asset === "PLAIN")?.availableUnits).toBe(70n);
  expect((await bench.reconcile()).clean).toBe(true);
});

it("is stored again by a watcher that runs on where a standby has not got it", async () => {
  await bench.watch();
  const alice = await bench.register("alice");
  await bench.caughtUp();
  await bench.ledger.owner.transaction(async (tx) => {
    for (const table of ["token_state_change", "token_state", "asset"]) {
      await tx.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
      const column = table === "asset" ? "symbol" : "asset";
      await tx.query(`DELETE FROM ${table} WHERE ${column} = 'PLAIN'`);
      await tx.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
    }
  });
  await bench.mine([]);
  await bench.caughtUp();
  await bench.mine([callOf("PlainToken", "mint", [alice, 70n])]);
  await bench.mine([]);
  await bench.caughtUp();
  const balances = await customerBalances(bench.database, parseCustomerId("alice"));
  expect(balances?.find(({ asset }) => asset === "PLAIN")?.availableUnits).toBe(70n);
  expect((await bench.reconcile()).clean).toBe(true);
});
