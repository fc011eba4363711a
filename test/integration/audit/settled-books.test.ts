/** What is owed at a block in which something was paid that the books do not have yet. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { createAuditNode } from "../../../cli/audit/audit-node.js";
import { readSettledBooks } from "../../../cli/audit/reserves/settled-books.js";
import { type LiabilityBooks, readLiabilities } from "../../../ledger/books/liabilities.js";
import type { JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { Desk, destination, TOKEN } from "../recovery/desk.js";
import { createPatientClient } from "../../helpers/exchange/patient-node.js";

let desk: Desk;
let rpc: JsonRpcClient;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  rpc = createPatientClient(desk.chain.url);
});
afterEach(async () => {
  rpc.close();
  await desk.close();
});

const sources = () => {
  const { database, signal } = desk;
  return { database, signal, node: createAuditNode(rpc, signal) };
};

const owedIn = ({ liabilities }: LiabilityBooks) => liabilities.map(({ units }) => units);

/** Alice is paid 1 of 10 TOKEN; the watcher has the block, and the worker has not looked. */
async function payUnbooked() {
  const fields = { key: "w", customer: "alice", amountAtoken: TOKEN };
  const { id } = await desk.request({ ...fields, to: destination(1) });
  await desk.lane().runRound(desk.signal);
  const { height } = desk.chain.mine();
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(owedIn(await readLiabilities(desk.database, { height }))).toEqual([10n * TOKEN]);
  return { id, height };
}

it("is read when the worker has booked it", async () => {
  const { height } = await payUnbooked();
  // However long a busy machine takes for the rounds.
  const reading = readSettledBooks(sources(), { height: undefined, looks: 10_000 });
  await desk.work(3);
  const { books, unbooked } = await reading;
  expect([books.height, owedIn(books), unbooked]).toEqual([height, [9n * TOKEN], []]);
});

it("is owed, and named, where nobody books it", async () => {
  const { id, height } = await payUnbooked();
  const { books, unbooked } = await readSettledBooks(sources(), { height, looks: 2 });
  expect([owedIn(books), unbooked]).toEqual([[10n * TOKEN], [{ withdrawalId: id, height }]]);
  // The block before has nothing of it.
  const before = await readSettledBooks(sources(), { height: height - 1 });
  expect([owedIn(before.books), before.unbooked]).toEqual([[10n * TOKEN], []]);
});
