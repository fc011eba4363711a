/** What readers of an index are told that was made anew of a chain that has lost blocks. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";

const RECIPIENT = `0x${"22".repeat(20)}`;

let stage: IndexerStage;

beforeAll(async () => {
  stage = await IndexerStage.open();
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
});

afterAll(async () => {
  await stage.close();
});

describe("an index that was made anew of a chain that has lost blocks", () => {
  /** Nobody writes meanwhile, and what is changed is put back. */
  async function withChanged(change: string, work: () => Promise<void>): Promise<void> {
    await stage.indexed();
    await stage.withoutNode(async () => {
      await stage.sql.query(
        `CREATE TABLE kept AS SELECT * FROM indexer.block;
         CREATE TABLE kept_progress AS SELECT * FROM indexer.progress`,
      );
      await stage.sql.query(change);
      try {
        await work();
      } finally {
        await stage.sql.query(
          `DELETE FROM indexer.block;
           INSERT INTO indexer.block SELECT * FROM kept;
           UPDATE indexer.progress p SET height = k.height, hash = k.hash, time = k.time
             FROM kept_progress k;
           DROP TABLE kept, kept_progress`,
        );
      }
    });
  }

  const shorter = (by: number) => `
    DELETE FROM indexer.block WHERE height > (SELECT height FROM indexer.progress) - ${by};
    UPDATE indexer.progress p SET height = b.height, hash = b.hash, time = b.time
      FROM indexer.block b WHERE b.height = p.height - ${by}`;

  const otherBlocks = `
    UPDATE indexer.block SET hash = sha256(hash)
     WHERE height > (SELECT height FROM indexer.progress) - 2;
    UPDATE indexer.progress p SET hash = b.hash FROM indexer.block b WHERE b.height = p.height`;

  beforeAll(async () => {
    for (let count = 0; count < 6; count += 1) await stage.mine({ to: RECIPIENT, value: 1n });
  });

  it.each([
    ["is shorter", shorter(3)],
    ["has other blocks in their place", otherBlocks],
  ])("refuses pages behind one of before where it %s", async (_what, change) => {
    await stage.indexed();
    const lists = ["/blocks?order=asc&limit=2", "/blocks?limit=2"];
    const nexts = await Promise.all(lists.map(async (list) => (await stage.get(list)).next));
    await withChanged(change, async () => {
      for (const next of nexts) {
        const refused = await stage.refusal(`/blocks?cursor=${next}`);
        expect(refused).toMatchObject({ status: 422, body: { code: "CURSOR_MISMATCH" } });
        expect(refused.body.detail).toMatch(/block \d+ .*not in the index: .*begin anew/);
      }
    });
    for (const next of nexts)
      expect((await stage.get(`/blocks?limit=2&cursor=${next}`)).items.length).toBe(2);
  });

  /** A reader of the stream, who gathers what comes. */
  async function reader(
    lastEventId: number | string,
    work: (told: (text: string) => Promise<string>) => Promise<void>,
  ) {
    const ending = new AbortController();
    const reply = await fetch(`${stage.url}/v1/stream`, {
      headers: { "last-event-id": String(lastEventId) },
      signal: ending.signal,
    });
    let text = "";
    const reading = (async () => {
      for await (const piece of reply.body ?? []) text += Buffer.from(piece).toString("utf8");
    })().catch(() => undefined);
    try {
      await work(async (wanted) => {
        await until(() => text.includes(wanted), { timeoutMs: 10_000, what: wanted });
        return text;
      });
    } finally {
      ending.abort();
      await reading;
    }
  }

  const rewoundAt = (height: number) =>
    new RegExp(
      `id: ${height}:(0x[0-9a-f]{64})\nevent: rewound\ndata: {"height":${height},"hash":"\\1"}`,
    );

  it("tells a reader of the stream who comes back with a block that it does not have", async () => {
    await stage.indexed();
    const top = stage.height;
    await withChanged(shorter(3), () =>
      reader(top, async (told) => {
        expect(await told("event: rewound\n")).toMatch(rewoundAt(top - 3));
      }),
    );
  });

  it("tells a reader who comes back when other blocks are in the place of those he has", async () => {
    await stage.indexed();
    const top = stage.height;
    let lastId = "";
    await reader(top - 2, async (told) => {
      lastId = /id: (.*)\nevent: block/.exec(await told(`"height":${top - 1},`))?.[1] ?? "";
    });
    await reader(lastId, async (told) => {
      expect(await told(`"height":${top},`)).not.toContain("rewound");
    });
    await withChanged(otherBlocks, () =>
      reader(lastId, async (told) => {
        expect(await told("event: rewound\n")).toMatch(rewoundAt(top));
      }),
    );
  });

  it.each([
    ["is shorter", shorter(3), 3],
    ["has other blocks in their place", otherBlocks, 0],
  ])(
    "tells a reader who is there when it takes its place, where it %s",
    async (_what, change, by) => {
      await stage.indexed();
      const top = stage.height;
      await reader(top - 1, async (told) => {
        expect(await told("event: block\n")).toContain(`id: ${top}:0x`);
        await withChanged(change, async () => {
          expect(await told("event: rewound\n")).toMatch(rewoundAt(top - by));
        });
      });
    },
  );
});
