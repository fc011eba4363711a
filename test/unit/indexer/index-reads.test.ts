/** Reads of the index in turns: what takes long has few of them, whoever asks. */
import { afterAll, describe, expect, it } from "@jest/globals";
import { READ_LIMIT_MS, isTooSlow, readsInTurns } from "../../../indexer/api/index-reads.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";

const tooSlow = () =>
  new SqlError("DATABASE_UNAVAILABLE", "no", { details: { sqlState: "57014" } });

/** Of those who wait to the end. */
const staying = new AbortController();
afterAll(() => staying.abort());

/** A database whose snapshots run until they are let go, or their time is over. */
function createDatabase() {
  const begun: { timeoutMs: number; end: (error?: Error) => void }[] = [];
  const reads = readsInTurns({
    query: () => Promise.resolve([]),
    async snapshot(work, { timeLimitMs: timeoutMs }) {
      const fault = await new Promise<Error | undefined>((end) => begun.push({ timeoutMs, end }));
      if (fault !== undefined) throw fault;
      return work({ query: () => Promise.resolve([]) });
    },
  });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const ask = (remoteAddress: string, signal = staying.signal) => {
    const read = reads.snapshot(() => Promise.resolve(remoteAddress), { signal, remoteAddress });
    read.catch(() => undefined);
    return read;
  };
  return { begun, ask, settled };
}

describe("a read", () => {
  it("that is short is done once, within a short time", async () => {
    const { begun, ask, settled } = createDatabase();
    const read = ask("192.0.2.1");
    await settled();
    begun[0]?.end();
    expect(await read).toBe("192.0.2.1");
    expect(begun.map(({ timeoutMs }) => timeoutMs < 1_000)).toEqual([true]);
  });

  it("that takes longer is done again, with all the time that there is, and then no more", async () => {
    const { begun, ask, settled } = createDatabase();
    const read = ask("192.0.2.1");
    await settled();
    begun[0]?.end(tooSlow());
    await settled();
    expect(begun.map(({ timeoutMs }) => timeoutMs).slice(1)).toEqual([READ_LIMIT_MS]);
    begun[1]?.end(tooSlow());
    expect(isTooSlow(await read.catch((error: unknown) => error))).toBe(true);
    expect(begun).toHaveLength(2);
  });

  it("that fails for another reason is not done again", async () => {
    const { begun, ask, settled } = createDatabase();
    const read = ask("192.0.2.1");
    await settled();
    begun[0]?.end(new SqlError("DATABASE_UNAVAILABLE", "gone", { details: { sqlState: "57P01" } }));
    await expect(read).rejects.toThrow("gone");
    expect(begun).toHaveLength(1);
  });
});

describe("many reads that take long", () => {
  it("have few connections at a time, and leave turns to others", async () => {
    const { begun, ask, settled } = createDatabase();
    for (let read = 0; read < 20; read++) void ask("192.0.2.1");
    const other = ask("192.0.2.9");
    await settled();
    // Each has its short time; the other client's turn comes behind those that have begun.
    const isLong = ({ timeoutMs }: { timeoutMs: number }) => timeoutMs === READ_LIMIT_MS;
    for (let at = 0; at < 5; at++) begun[at]?.end(tooSlow());
    await settled();
    begun.filter((one) => !isLong(one))[5]?.end();
    begun.filter((one) => !isLong(one))[6]?.end();
    const first = await Promise.race([other, settled().then(() => "none")]);
    expect(first).toBe("192.0.2.9");
    for (const one of begun.filter((some) => !isLong(some)).slice(7)) one.end(tooSlow());
    await settled();
    expect(begun.filter(isLong)).toHaveLength(2);
  });

  it("of who has left take no turn", async () => {
    const { begun, ask, settled } = createDatabase();
    const leaving = new AbortController();
    for (let read = 0; read < 20; read++) void ask("192.0.2.1", leaving.signal);
    await settled();
    leaving.abort();
    await settled();
    const kept = begun.length;
    expect(kept).toBeLessThan(10);
    for (const one of begun) one.end();
    await settled();
    expect(begun).toHaveLength(kept);
  });
});
