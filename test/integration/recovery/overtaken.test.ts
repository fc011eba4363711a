/** A ledger that lost its last commits, and in which others wrote on before the watcher looked. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { listEvents } from "../../../ledger/events.js";
import { openIncident } from "../../../ledger/incidents.js";
import { Desk, destination, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const request = (number: number) =>
  desk.request({
    key: `k${number}`,
    customer: "alice",
    to: destination(number),
    amountAtoken: TOKEN,
  });

it("is closed although its numbers have reached what was told, and tells again what has these numbers", async () => {
  const replica = await desk.backup();
  await request(1);
  const told = await listEvents(desk.database, { afterSeq: 0, limit: 100 });
  const { seq: last = 0 } = told.at(-1) ?? {};
  // All of it was told, as a client or a webhook had it.
  await desk.watch();

  await desk.useDatabase(replica);
  const [other, further] = [await request(2), await request(3)];
  expect((await listEvents(desk.database, { afterSeq: last - 1, limit: 9 }))[0]).toMatchObject({
    seq: last,
    data: { withdrawalId: other.id },
  });
  await desk.watch();
  expect((await openIncident(desk.database))?.kind).toBe("RECOVERY");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  const since = await listEvents(desk.database, { afterSeq: last, limit: 100 });
  const accepted = since.filter(({ type }) => type === "withdrawal.accepted");
  expect(accepted.map(({ epoch, data }) => [epoch, data["withdrawalId"]])).toEqual([
    [1, further.id],
    [2, other.id],
  ]);
});
