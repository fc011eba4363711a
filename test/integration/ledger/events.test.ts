import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { appendEvents } from "../../../ledger/events.js";
import { listEvents } from "../../helpers/events.js";
import { createGate } from "../../helpers/gate.js";
import { openTestLedger, type TestLedger, standing } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

/** What a JSON text has to escape, and what it may write in two ways. */
const ODD = {
  depositId: "1",
  text: 'quote " and \\ {}, line\n\u0001\u2028 \u00e9 \u{1f600} /',
  number: 1.5e-7,
  nothing: null,
  list: [true, [], {}],
};

let ledger: TestLedger;
beforeAll(async () => {
  ledger = await openTestLedger();
});
afterAll(() => ledger.drop());

describe("the event stream", () => {
  it("has no gaps under concurrency, rolled back writers and batches, and never looks back", async () => {
    const { database } = ledger;
    const seen: number[] = [];
    let isWriting = true;
    const reader = (async () => {
      for (;;) {
        const wasWriting = isWriting;
        const page = await listEvents(database, { afterSeq: seen.at(-1) ?? 0, limit: 1000 });
        seen.push(...page.map(({ seq }) => seq));
        if (!wasWriting && page.length === 0) return;
      }
    })();
    const writers = Array.from({ length: 40 }, (_, writer) =>
      database
        .transaction(async (tx) => {
          const events = Array.from({ length: 1 + (writer % 3) }, (__, index) => ({
            type: "deposit.detected" as const,
            data: { writer, index },
          }));
          await appendEvents(tx, events);
          if (writer % 5 === 0) throw new Error("rolled back on purpose");
        })
        .catch(() => undefined),
    );
    await Promise.all(writers);
    isWriting = false;
    await reader;
    const written = Array.from({ length: 40 }, (_, writer) => writer)
      .filter((writer) => writer % 5 !== 0)
      .reduce((sum, writer) => sum + 1 + (writer % 3), 0);
    expect(seen).toEqual(Array.from({ length: written }, (_, index) => index + 1));
  });

  it("keeps the order inside a batch and gives data back as it was written", async () => {
    const { database } = ledger;
    const [last] = await database.query<{ seq: string }>(`SELECT seq FROM event_counter`);
    const first = await database.transaction((tx) =>
      appendEvents(tx, [
        { type: "deposit.detected", data: ODD },
        { type: "deposit.credited", data: { depositId: "1" } },
      ]),
    );
    expect(first).toBe(Number(last?.seq) + 1);
    const page = await listEvents(database, { afterSeq: Number(last?.seq), limit: 10 });
    expect(page.map(({ type, data }) => [type, data])).toEqual([
      ["deposit.detected", ODD],
      ["deposit.credited", { depositId: "1" }],
    ]);
    for (const { at } of page) expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it("makes a later transaction wait for an earlier one, so commit order is number order", async () => {
    const { database } = ledger;
    const [held, released] = [createGate(), createGate()];
    const order: string[] = [];
    const first = standing(database, async (tx) => {
      await appendEvents(tx, [{ type: "deposit.detected", data: {} }]);
      held.open();
      await released.opened;
      order.push("first");
    });
    const writers = [first];
    try {
      await Promise.race([held.opened, first]);
      const second = async () => {
        await database.transaction((tx) =>
          appendEvents(tx, [{ type: "deposit.credited", data: {} }]),
        );
        order.push("second");
      };
      writers.push(second());
      await until(
        async () => {
          const [row] = await database.query<{ waiting: number }>(
            `SELECT count(*)::integer AS waiting FROM pg_stat_activity
              WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          );
          return row?.waiting === 1;
        },
        { timeoutMs: 5_000, what: "the second writer waits" },
      );
    } finally {
      released.open();
      await Promise.allSettled(writers);
    }
    await Promise.all(writers);
    expect(order).toEqual(["first", "second"]);
  });
});
