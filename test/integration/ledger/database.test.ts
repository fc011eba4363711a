import { describe, expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../chain/hashes.js";
import { openLedger, readStoredIdentity } from "../../../ledger/database.js";
import { openTestLedger, silentLog, TEST_IDENTITY } from "../../helpers/services/ledger.js";
import { createTestDatabase } from "../../helpers/services/postgres.js";

const { signal } = new AbortController();

describe("opening the ledger", () => {
  it("refuses the ledger of another chain and names the remedy, without touching it", async () => {
    const ledger = await openTestLedger();
    const foreign = [
      { ...TEST_IDENTITY, chainId: 6941n },
      { ...TEST_IDENTITY, genesisHash: keccak256Hex(Buffer.from("other")) },
    ];
    for (const identity of foreign) {
      await expect(
        openLedger({ url: ledger.url, log: silentLog, signal, identity }),
      ).rejects.toMatchObject({
        code: "FOREIGN_LEDGER",
        message: expect.stringContaining("or an empty one"),
      });
    }
    await ledger.drop();
  });

  it("refuses a ledger of a newer format", async () => {
    const ledger = await openTestLedger();
    await ledger.database.query(`UPDATE meta SET value = '2' WHERE key = 'format_version'`);
    await expect(
      openLedger({ url: ledger.url, log: silentLog, signal, identity: TEST_IDENTITY }),
    ).rejects.toMatchObject({ code: "NEWER_LEDGER" });
    await ledger.drop();
  });

  it("opens the same ledger again and tells its chain", async () => {
    const ledger = await openTestLedger();
    const again = await openLedger({
      url: ledger.url,
      log: silentLog,
      signal,
      identity: TEST_IDENTITY,
    });
    await again.close();
    expect(await readStoredIdentity({ url: ledger.url, log: silentLog, signal })).toEqual(
      TEST_IDENTITY,
    );
    await ledger.drop();
  });

  it("opens an empty database for several processes at once", async () => {
    const { url, drop } = await createTestDatabase();
    expect(await readStoredIdentity({ url, log: silentLog, signal })).toBeUndefined();
    const opened = await Promise.all(
      [1, 2, 3].map(() => openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY })),
    );
    const counts = await Promise.all(
      opened.map((database) => database.query(`SELECT height FROM watch_cursor`)),
    );
    expect(counts).toEqual([[{ height: "-1" }], [{ height: "-1" }], [{ height: "-1" }]]);
    await Promise.all(opened.map((database) => database.close()));
    await drop();
  });
});
