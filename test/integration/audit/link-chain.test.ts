/** The chain of links: every row of the books gets one, in time, and none is changed. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { openLedger } from "../../../ledger/database.js";
import { linkRows, type LinkRound, readHead } from "../../../ledger/tamper/chainer.js";
import { newestKeys } from "../../../ledger/tamper/linked-rows.js";
import { SettledKeys } from "../../../ledger/tamper/settled-keys.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { silentLog, standing } from "../../helpers/services/ledger.js";
import { ExportedBooks } from "./export/exported-books.js";

let books: ExportedBooks;
beforeAll(async () => {
  books = await ExportedBooks.open();
});
afterAll(() => books?.close());

const own = () => ({ genesisHash: books.bench.chain.genesisHash, chainId: 6940n });

describe("the chain of links", () => {
  it("links what is new at once, and what committed late when all is looked at", async () => {
    const { database, owner } = books.bench.ledger;
    const columns = `(id, customer_id, destination, listed)`;
    const address = `0x${"5".repeat(40)}`;
    const [late] = await owner.query<{ id: string }>(
      `SELECT nextval(pg_get_serial_sequence('policy_listing', 'id')) AS id`,
    );
    await owner.query(
      `INSERT INTO policy_listing (customer_id, destination, listed)
       SELECT 'late-' || n, $1, true FROM generate_series(1, 4200) AS n`,
      [address],
    );
    const rounds: LinkRound[] = [];
    do rounds.push(await linkRows(database, "recent"));
    while (rounds.at(-1)?.linked !== 0);
    expect(rounds).toEqual([
      { linked: 2_000, hasMore: true },
      { linked: 2_000, hasMore: true },
      { linked: 200, hasMore: false },
      { linked: 0, hasMore: false },
    ]);
    await owner.query(
      `INSERT INTO policy_listing ${columns} OVERRIDING SYSTEM VALUE VALUES ($1, 'late', $2, true)`,
      [late?.id, address],
    );
    expect((await linkRows(database, "recent")).linked).toBe(0);
    expect((await linkRows(database)).linked).toBe(1);
    expect((await linkRows(database)).linked).toBe(0);
  });

  it("waits for who was writing as others committed, however long that takes", async () => {
    const { database, owner } = books.bench.ledger;
    const settledKeys = new SettledKeys();
    const link = async () => linkRows(database, "all", await settledKeys.look(database));
    const cursor = async () => {
      const [row] = await owner.query<{ row_key: string }>(
        `SELECT row_key FROM chain_cursor WHERE kind = 'listing'`,
      );
      return Number(row?.row_key);
    };
    const list = async (sql: Sql, customer: string) => {
      const [row] = await sql.query<{ id: string }>(
        `INSERT INTO policy_listing (customer_id, destination, listed, at)
         VALUES ($1, '0x${"5".repeat(40)}', true, now() - interval '1 hour') RETURNING id`,
        [customer],
      );
      return Number(row?.id);
    };
    const quick = await standing(owner, async (tx) => {
      const slow = await list(tx, "slow");
      const key = await list(owner, "quick");
      for (let round = 0; round < 3; round += 1) await link();
      expect(await cursor()).toBeLessThan(slow);
      return key;
    });
    expect((await link()).linked).toBe(1);
    await link();
    expect(await cursor()).toBe(quick);
  });

  it("is appended to by one at a time, and never changed", async () => {
    const { database, owner } = books.bench.ledger;
    await owner.query(
      `WITH next AS (UPDATE event_counter SET seq = seq + 1 RETURNING seq)
       INSERT INTO event (seq, epoch, type, data) SELECT seq, 1, 'deposit.detected', '{}' FROM next`,
    );
    const before = await readHead(database);
    await Promise.all([linkRows(database), linkRows(database), linkRows(database)]);
    expect((await readHead(database)).n).toBe(before.n + 1);
    for (const change of [
      "UPDATE chain_link SET digest = digest",
      "DELETE FROM chain_link",
      "UPDATE chain_cursor SET row_key = row_key - 1 WHERE row_key > 0 OR true",
      `INSERT INTO chain_link SELECT n + 1, kind, row_key + 1000, digest, hash, repeat('0', 64)
         FROM chain_link ORDER BY n DESC LIMIT 1`,
      `INSERT INTO chain_link
       SELECT n + 5, kind, row_key + 1000, digest, hash, encode(sha256(convert_to(hash || E'\\n' ||
              (n + 5) || E'\\n' || kind || E'\\n' || (row_key + 1000) || E'\\n' || digest, 'UTF8')),
              'hex') FROM chain_link ORDER BY n DESC LIMIT 1`,
    ]) {
      await expect(owner.query(change)).rejects.toThrow();
    }
  });

  it("goes on behind what is linked where the server would give a number again", async () => {
    const { database, owner, url, ownerUrl } = books.bench.ledger;
    const { signal } = new AbortController();
    const open = (of: string) => openLedger({ url: of, log: silentLog, signal, identity: own() });
    const list = async (sql: Sql) => {
      const [row] = await sql.query<{ id: string }>(
        `INSERT INTO policy_listing (customer_id, destination, listed)
         VALUES ('again', '0x${"5".repeat(40)}', true) RETURNING id`,
      );
      return Number(row?.id);
    };
    const settledKeys = new SettledKeys();
    const link = async () => linkRows(database, "all", await settledKeys.look(database));
    const gap = await owner
      .transaction(async (tx) => {
        throw await list(tx);
      })
      .catch(Number);
    const newest = await list(owner);
    for (let round = 0; round < 3; round += 1) await link();
    const drawn = "SELECT last_value::text AS last FROM deposit_seq_seq";
    const before = await owner.query(drawn);

    await owner.query("SELECT setval('policy_listing_id_seq', $1, false)", [gap]);
    await expect(open(url)).rejects.toMatchObject({
      code: "NUMBERS_BEHIND",
      message: expect.stringMatching(/policy_listing_id_seq.* as the owner/),
    });
    await (await open(ownerUrl)).close();
    expect(await list(owner)).toBeGreaterThan(newest);
    expect((await link()).linked).toBe(1);
    // Only what is behind is moved, and a service goes on.
    expect(await owner.query(drawn)).toEqual(before);
    await (await open(url)).close();
  });

  it("carries nothing of a ledger that was lost into the one in its place", async () => {
    const { owner } = books.bench.ledger;
    const list = (sql: Sql, count: number) =>
      sql.query(
        `INSERT INTO policy_listing (customer_id, destination, listed)
         SELECT 'lost-' || n, '0x${"5".repeat(40)}', true FROM generate_series(1, $1) AS n`,
        [count],
      );
    const cursor = async (sql: Sql) => {
      const [row] = await sql.query<{ settled: string; newest: string }>(
        `SELECT row_key AS settled, (SELECT max(id) FROM policy_listing) AS newest
           FROM chain_cursor WHERE kind = 'listing'`,
      );
      return { settled: Number(row?.settled), newest: Number(row?.newest) };
    };
    const backup = await openLedger({
      url: books.copy.url,
      log: silentLog,
      signal: new AbortController().signal,
      identity: own(),
    });
    try {
      await list(owner, 5);
      const settledKeys = new SettledKeys();
      await settledKeys.look(owner);
      // It may have given as many keys again.
      const place = async (sql: Sql) => (await newestKeys(sql)).place;
      expect(await place(backup)).not.toBe(await place(owner));
      await list(backup, 5);
      expect(await settledKeys.look(backup)).toEqual(new Map());
      const settled = await settledKeys.look(backup);
      expect(settled.get("listing")).toBe((await cursor(backup)).newest);

      // A look at the one before, and then the other one answers.
      await linkRows(backup, "all", new Map([["listing", 1_000_000]]));
      const { settled: reached, newest } = await cursor(backup);
      expect(reached).toBe(newest);
      await list(backup, 1);
      expect((await linkRows(backup, "all")).linked).toBe(1);
    } finally {
      await backup.close();
    }
  });
});
