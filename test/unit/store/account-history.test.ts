/** Old versions of accounts, as they are read from a level store on disk. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { addressToBytes } from "../../../chain/address.js";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { AccountHistory } from "../../../node/store/account-history.js";
import { type Database, openDatabase, storeKey } from "../../../node/store/database.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";

const busy = testAddress(2);
const rare = testAddress(3);
const HEAD = 300;

/** Heights at which each account has a version: every block, and now and then. */
const HEIGHTS = new Map([
  [testAddress(1), [0]],
  [busy, Array.from({ length: HEAD + 2 }, (_, height) => height)],
  [rare, [7, 8, 90, 91, 200, HEAD + 1]],
  [testAddress(4), [HEAD + 1]],
]);

let folder: string;
let database: Database;
let reads: number;
let history: AccountHistory;

beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-history-"));
  database = await openDatabase(folder);
  reads = 0;
  const few = database.few.bind(database);
  database.few = (range) => {
    reads += 1;
    return few(range);
  };
  const writes = [...HEIGHTS].flatMap(([address, heights]) =>
    heights.map((height) => ({
      key: storeKey("accountHistory", addressToBytes(address), heightBytes(height)),
      value: Buffer.from(`${address} ${height}`),
    })),
  );
  await database.write(writes, { durable: false });
  history = new AccountHistory(database);
});

afterEach(async () => {
  await database.close();
  fs.rmSync(folder, { recursive: true });
});

/** By definition: the newest version at or below the height and the head. */
function expected(address: string, height: number, head: number): string | undefined {
  const heights = [...HEIGHTS].find(([each]) => each === address)?.[1] ?? [];
  const at = heights.filter((each) => each <= Math.min(height, head)).at(-1);
  return at === undefined ? undefined : `${address} ${at}`;
}

describe("versions of accounts below the head", () => {
  it("are right in any order of reading, many at once", async () => {
    const order = Array.from({ length: HEAD + 1 }, (_, turn) => (turn * 101) % (HEAD + 1));
    const ascending = Array.from({ length: HEAD + 1 }, (_, height) => height);
    for (const heights of [ascending, ascending.toReversed(), order]) {
      for (const address of HEIGHTS.keys()) {
        const wanted = heights.map((height) => expected(address, height, HEAD));
        const found = await Promise.all(
          heights.map((height) => history.versionAt(address, height, HEAD)),
        );
        expect([address, found.map((bytes) => bytes?.toString())]).toEqual([address, wanted]);
      }
    }
  });

  it("are read a stretch at a time by who goes upwards", async () => {
    for (let height = 0; height < HEAD; height += 1) await history.versionAt(busy, height, HEAD);
    expect(reads).toBeLessThanOrEqual(5);
  });

  it("never hold what was not yet published, and see it afterwards", async () => {
    const at = async (height: number, head: number) =>
      (await history.versionAt(rare, height, head))?.toString();
    expect(await at(HEAD, HEAD)).toBe(`${rare} 200`);
    expect(await at(HEAD + 1, HEAD)).toBe(`${rare} 200`);
    expect(await at(HEAD, HEAD + 2)).toBe(`${rare} 200`);
    expect(await at(HEAD + 1, HEAD + 2)).toBe(`${rare} ${HEAD + 1}`);
  });

  it("are read again after a fault", async () => {
    let isBroken = true;
    const few = database.few.bind(database);
    database.few = (range) => {
      if (isBroken) throw new Error("disk");
      return few(range);
    };
    const faulty = new AccountHistory(database);
    await expect(faulty.versionAt(rare, 10, HEAD)).rejects.toThrow("disk");
    isBroken = false;
    expect((await faulty.versionAt(rare, 10, HEAD))?.toString()).toBe(`${rare} 8`);
  });
});
