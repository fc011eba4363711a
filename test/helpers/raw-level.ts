/** A store's bytes as they lie on disk, past every check: to damage them. */
import { Level } from "level";

/** One record as it is stored. */
export interface RawRecord {
  readonly key: Buffer;
  readonly stored: Buffer;
}

/** All records of a store that nobody has open. */
export async function rawRecords(folder: string): Promise<RawRecord[]> {
  return withRaw(folder, async (level) => {
    const records = await level.iterator().all();
    return records.map(([key, stored]) => ({ key, stored }));
  });
}

/** Writes stored bytes as they are; undefined deletes. */
export function putRaw(folder: string, key: Buffer, stored: Buffer | undefined): Promise<void> {
  return withRaw(folder, (level) =>
    stored === undefined ? level.del(key) : level.put(key, stored),
  );
}

/** The same bytes with one bit of them turned over. */
export function withFlippedBit(bytes: Buffer, bit: number): Buffer {
  const damaged = Buffer.from(bytes);
  damaged.writeUInt8(damaged.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
  return damaged;
}

async function withRaw<T>(
  folder: string,
  work: (level: Level<Buffer, Buffer>) => Promise<T>,
): Promise<T> {
  const level = new Level<Buffer, Buffer>(folder, {
    keyEncoding: "buffer",
    valueEncoding: "buffer",
  });
  try {
    return await work(level);
  } finally {
    await level.close();
  }
}
