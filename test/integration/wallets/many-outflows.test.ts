/** More transactions that nobody asked for than one release names: none of them is let by unseen. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { freezeSigning, readFreeze } from "../../../ledger/withdrawals/signing-freeze.js";
import { Desk, destination, TOKEN, WALLET } from "../recovery/desk.js";

/** One more than a release names. */
const COUNT = 1_001;

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const hashAt = (index: number) => `0x${index.toString(16).padStart(64, "0")}`;

const frozen = async () => (await readFreeze(desk.database, WALLET)).frozen;

/** As the watcher has found them; the last one may have paid four coins to an address. */
async function findOutflows(): Promise<void> {
  const hashes = Array.from({ length: COUNT }, (_, index) => hashAt(index + 1));
  await desk.database.query(
    `INSERT INTO foreign_outflow (wallet, tx_hash, amount_units, fee_atoken, height, asset)
     SELECT $1, hash, 7, 21000, 1, 'TOKEN' FROM unnest($2::text[]) AS hash`,
    [WALLET, hashes],
  );
  await desk.database.query(
    `INSERT INTO possible_payment (tx_hash, destination, contract, amount_units)
     VALUES ($1, $2, '', $3::numeric)`,
    [hashAt(COUNT), destination(1), (4n * TOKEN).toString()],
  );
  await freezeSigning(desk.database, WALLET, "somebody else has paid");
}

it("signs nothing before all are acknowledged, and pays no request that the last one may have paid", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  await findOutflows();
  const named = Array.from({ length: COUNT - 1 }, (_, index) => hashAt(index + 1));
  const words = ["--acknowledge", ...named, "--reason", "payments by hand"];
  const first = await desk.causeway("withdrawals", "release", ...words);
  expect([first.code, await frozen()]).toEqual([1, true]);
  expect(first.text).toContain(hashAt(COUNT));
  await desk.work(3);
  expect(desk.paidAtoken(destination(1))).toBe(0n);
  await desk.causeway("withdrawals", "release", "--accept-foreign");
  expect(await frozen()).toBe(false);
  await desk.work(3);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(desk.paidAtoken(destination(1))).toBe(0n);
});

it("are acknowledged all by the word that is about all", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  await findOutflows();
  await desk.causeway("withdrawals", "release", "--accept-foreign");
  expect(await frozen()).toBe(false);
  await desk.work(3);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(desk.paidAtoken(destination(1))).toBe(0n);
});
