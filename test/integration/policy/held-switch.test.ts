/** The kill switch where a session of somebody keeps a lock that it needs, as any role of the database may. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { readKillSwitch, setKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { lockFreeze } from "../../../ledger/requests/signing-freeze.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { House } from "../../helpers/exchange/house.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { createGate } from "../../helpers/gate.js";
import { registerTestWallets, standing } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

const SECOND = privateKeyToAddress(keccak256(Buffer.from("a wallet that is opened meanwhile")));

/** The database without the wait for a lock being bounded: what it waits for may take a busy machine long. */
function patient(database: SqlDatabase): Pick<SqlDatabase, "transaction"> {
  return {
    transaction: (work) =>
      database.transaction((tx) =>
        work({
          query: async (text, parameters) =>
            text.includes("lock_timeout") ? [] : tx.query(text, parameters),
        }),
      ),
  };
}

let house: House;

beforeEach(async () => {
  house = await House.open();
});
afterEach(() => house.close());

it.each([
  ["its own lock", "SELECT pg_advisory_xact_lock(8083000009)"],
  ["a wallet's switch", "SELECT 1 FROM signing_freeze FOR UPDATE"],
])("is told to be unheard, and does not hang, behind %s", async (_what, statement) => {
  await house.lane().runRound(house.signal);
  const wanted = { level: "stop-sign", reason: "a key has leaked", by: "ann" } as const;
  await standing(house.ledger.owner, async (tx) => {
    await tx.query(statement);
    await expect(setKillSwitch(house.database, wanted)).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
      message: expect.stringContaining("lock timeout"),
    });
  });
  expect((await readKillSwitch(house.database)).level).toBe("none");
  await setKillSwitch(house.database, wanted);
  expect((await readKillSwitch(house.database)).level).toBe("stop-sign");
});

it("is known to a wallet that is opened while it is set, once it is said to be set", async () => {
  await house.lane().runRound(house.signal);
  await registerTestWallets(house.database, SECOND);
  const countWaiting = async () => {
    const waiting = await house.ledger.owner.query(
      `SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return waiting.length;
  };
  const [held, released] = [createGate(), createGate()];
  const signing = standing(house.ledger.owner, async (tx) => {
    await tx.query(`SELECT 1 FROM signing_freeze FOR SHARE`);
    held.open();
    await released.opened;
  });
  await Promise.race([held.opened, signing]);
  const wanted = { level: "stop-sign", reason: "a key has leaked", by: "ann" } as const;
  const setting = setKillSwitch(patient(house.database), wanted);
  const timeoutMs = 4_000;
  await until(async () => (await countWaiting()) === 1, { timeoutMs, what: "the setting waits" });

  const seen: boolean[] = [];
  const opening = createHotWallet(house.database, { wallet: SECOND, firstNonce: 0n });
  const using = opening.then(() =>
    standing(house.ledger.owner, async (tx) => {
      seen.push((await lockFreeze(tx, SECOND)).frozen);
      // What is committed by this look is committed behind the word that all is stopped.
      await setting;
    }),
  );
  const hasCome = async () => seen.length === 1 || (await countWaiting()) === 2;
  await until(hasCome, { timeoutMs, what: "the wallet is opened, or waits" });
  released.open();
  await Promise.all([signing, setting, using]);
  expect(seen).toEqual([true]);
});
