/** Whose key a worker has stands in the wallet's row, for whoever sends coins there. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { Desk, destination, KEY, WALLET } from "../../recovery/desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  // Leases go from one to another where a test says so.
  desk.leaseMs = 60_000;
  await forget();
});
afterEach(() => desk.close());

/** Seconds that the row's word counts still; undefined where there is none. */
async function heldFor(): Promise<number | undefined> {
  const [row] = await desk.database.query<{ seconds: number | null }>(
    `SELECT extract(epoch FROM key_held_until - clock_timestamp())::float8 AS seconds
       FROM hot_wallet WHERE wallet = $1`,
    [WALLET],
  );
  return row?.seconds ?? undefined;
}

/** Nobody has said anything, and nobody works for the wallet. */
const forget = () =>
  desk.database.query(`UPDATE hot_wallet SET key_held_until = NULL, lease_owner = NULL`);

const written = async () => {
  const [row] = await desk.database.query<{ until: string }>(
    `SELECT key_held_until::text AS until FROM hot_wallet`,
  );
  return row?.until;
};

it("is said by a lane that has the key, and again when some of the time is over", async () => {
  const lane = desk.laneOf(KEY);
  await lane.runRound(desk.signal);
  expect(await heldFor()).toBeGreaterThan(115);
  const first = await written();
  await lane.runRound(desk.signal);
  expect(await written()).toBe(first);
  for (const until of ["104 s", "3 min", "-1 s"]) {
    await desk.database.query(
      `UPDATE hot_wallet SET key_held_until = clock_timestamp() + $1::interval`,
      [until],
    );
    await lane.runRound(desk.signal);
    const seconds = await heldFor();
    expect([until, seconds !== undefined && seconds > 115 && seconds <= 120]).toEqual([
      until,
      true,
    ]);
  }
});

it("is said by one that stands by for another, and by none that lacks the key", async () => {
  const { signer } = desk.rulesOf(KEY);
  await desk.makeLane(WALLET, { signer, hasKey: () => false }).runRound(desk.signal);
  expect(await heldFor()).toBeUndefined();
  await desk.makeLane(WALLET, { signer, hasKey: () => true }).runRound(desk.signal);
  await desk.database.query(`UPDATE hot_wallet SET key_held_until = NULL`);
  const standby = desk.makeLane(WALLET, { signer, hasKey: () => true });
  await standby.runRound(desk.signal);
  expect(standby.status().holdsLease).toBe(false);
  expect(await heldFor()).toBeGreaterThan(115);
});

it("is not said while who signs is silent: the key may be lost behind him", async () => {
  let isSilent = true;
  const { signer } = desk.rulesOf(KEY);
  const lane = desk.makeLane(WALLET, {
    signer: {
      ...signer,
      address: signer.address,
      review: (payments) => signer.review(payments),
      trouble: () => signer.trouble(),
      sign: async (...asked) => {
        if (!isSilent) return signer.sign(...asked);
        const [payments] = asked;
        return payments.map(() => ({ kind: "unanswered", reason: "nobody is there" }) as const);
      },
    },
    hasKey: () => true,
  });
  const asked = { key: "k1", customer: "alice", to: destination(1), amountAtoken: 5n };
  await desk.request(asked);
  for (let round = 0; round < 2; round += 1) {
    await lane.runRound(desk.signal);
    await forget();
  }
  await lane.runRound(desk.signal);
  expect(await heldFor()).toBeUndefined();
  isSilent = false;
  for (let round = 0; round < 2; round += 1) await lane.runRound(desk.signal);
  expect(await heldFor()).toBeGreaterThan(115);
});
