/** Whose key a worker has stands in the wallet's row, for whoever sends coins there. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { resumeCrediting } from "../../../../ledger/incidents.js";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { KillSwitch, LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import type { Signer, SigningOutcome } from "../../../../withdrawal-worker/signers/signer-port.js";
import { recordIncident } from "../../../helpers/services/ledger.js";
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

const UNANSWERED: SigningOutcome = { kind: "unanswered", reason: "nobody is there" };

/**
 * A lane whose signer says this about all that it is asked for; what the holder says for undefined.
 * @param provesKey what it says to a text; without it it signs none
 */
function laneThatHears(
  answer: () => SigningOutcome | undefined,
  given: Partial<LaneContext> = {},
  provesKey?: Signer["provesKey"],
): Lane {
  const { signer } = desk.rulesOf(KEY);
  const answering: Signer = {
    address: signer.address,
    review: (payments) => signer.review(payments),
    trouble: () => signer.trouble(),
    ...(provesKey !== undefined && { provesKey }),
    sign: async (intents, options) => {
      const outcome = answer();
      return outcome === undefined ? signer.sign(intents, options) : intents.map(() => outcome);
    },
  };
  return desk.makeLane(WALLET, { signer: answering, hasKey: () => true }, given);
}

/** Rounds behind each of which nobody has said anything. */
async function rounds(lane: Lane, count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    await forget();
    await lane.runRound(desk.signal);
  }
}

const asked = { key: "k1", customer: "alice", to: destination(1), amountAtoken: 5n };

it("is not said while who signs is silent: the key may be lost behind him", async () => {
  let answer: SigningOutcome | undefined = UNANSWERED;
  const lane = laneThatHears(() => answer);
  await desk.request(asked);
  await rounds(lane, 3);
  expect(await heldFor()).toBeUndefined();
  answer = undefined;
  await rounds(lane, 2);
  expect(await heldFor()).toBeGreaterThan(115);
});

it("is not said either when what he has not signed is taken back, and nobody's else is begun", async () => {
  let answer: SigningOutcome | undefined = UNANSWERED;
  const lane = laneThatHears(() => answer);
  const first = await desk.request(asked);
  await rounds(lane, 3);
  const next = await desk.request({ ...asked, key: "k2", to: destination(2) });
  expect(await cancelWithdrawal(desk.database, first.id, "drill")).toBe("done");
  await rounds(lane, 3);
  expect(await heldFor()).toBeUndefined();
  const statuses = async () => [
    (await desk.read(first.id)).status,
    (await desk.read(next.id)).status,
  ];
  expect(await statuses()).toEqual(["cancelling", "accepted"]);
  answer = undefined;
  await rounds(lane, 2);
  expect(await heldFor()).toBeGreaterThan(115);
  await desk.work(3, [lane]);
  expect(await statuses()).toEqual(["cancelled", "settled"]);
});

it("is not said by one that starts before what waits for a signature has got one", async () => {
  await desk.request(asked);
  await rounds(
    laneThatHears(() => UNANSWERED),
    2,
  );
  const silent = laneThatHears(() => UNANSWERED);
  await rounds(silent, 2);
  expect(await heldFor()).toBeUndefined();
  const whole = laneThatHears(() => undefined);
  await rounds(whole, 1);
  expect(await heldFor()).toBeUndefined();
  await rounds(whole, 1);
  expect(await heldFor()).toBeGreaterThan(115);
});

it("is not said behind a silence before a signature comes, though bytes of before it are mined", async () => {
  let answer: SigningOutcome | undefined;
  const lane = laneThatHears(() => answer);
  const { id } = await desk.request(asked);
  await rounds(lane, 2);
  expect([(await desk.read(id)).status, await heldFor()]).toEqual([
    "broadcast",
    expect.any(Number),
  ]);
  answer = UNANSWERED;
  expect(await cancelWithdrawal(desk.database, id, "drill")).toBe("done");
  await rounds(lane, 2);
  expect(await heldFor()).toBeUndefined();
  desk.chain.mine();
  await rounds(lane, 3);
  expect([(await desk.read(id)).status, await heldFor()]).toEqual(["settled", undefined]);
  answer = undefined;
  const next = await desk.request({ ...asked, key: "k2", to: destination(2) });
  await rounds(lane, 2);
  expect((await desk.read(next.id)).status).toBe("broadcast");
  expect(await heldFor()).toBeGreaterThan(115);
});

it("is said by one that starts where all that waits has its signature, of a transfer of nothing, too", async () => {
  const { id } = await desk.request(asked);
  const first = laneThatHears(() => undefined);
  await rounds(first, 2);
  expect(await cancelWithdrawal(desk.database, id, "drill")).toBe("done");
  const silent = laneThatHears(() => UNANSWERED);
  await rounds(silent, 2);
  expect([(await desk.read(id)).status, await heldFor()]).toEqual(["cancelling", undefined]);
  // It takes the payment's place in the pool; no block takes it.
  await rounds(first, 2);
  const second = laneThatHears(() => undefined);
  await rounds(second, 2);
  expect((await desk.read(id)).status).toBe("cancelling");
  expect(await heldFor()).toBeGreaterThan(115);
});

it("is said by one that starts while signing is stopped, as nobody is asked for anything then", async () => {
  await desk.request(asked);
  await rounds(
    laneThatHears(() => UNANSWERED),
    2,
  );
  expect(await heldFor()).toBeUndefined();
  const by = { reason: "drill", by: "tests" };
  const ofHome: KillSwitch = { read: async () => ({ ...SWITCH_UNTOUCHED, level: "stop-sign" }) };
  const incident = { kind: "NODES_DISAGREE", height: 1, message: "drill", details: {} } as const;
  const database = desk.database;
  const none = async () => undefined;
  const stops = [
    {
      what: "the ledger's switch",
      stop: () => setKillSwitch(database, { level: "stop-sign", ...by }),
      goOn: () => setKillSwitch(database, { level: "none", ...by }),
      given: {},
    },
    { what: "the home's switch", stop: none, goOn: none, given: { killSwitch: ofHome } },
    {
      what: "an incident",
      stop: () => recordIncident(database, incident),
      goOn: () => resumeCrediting(database, "ann"),
      given: {},
    },
  ];
  for (const { what, stop, goOn, given } of stops) {
    await stop();
    await rounds(
      laneThatHears(() => UNANSWERED, given),
      2,
    );
    expect([what, await heldFor()]).toEqual([what, expect.any(Number)]);
    await goOn();
    await rounds(
      laneThatHears(() => UNANSWERED),
      2,
    );
    expect([what, await heldFor()]).toEqual([what, undefined]);
  }
});

it("is said from the first round on where the key lies in the process: it answers by itself", async () => {
  await desk.request(asked);
  await rounds(
    laneThatHears(() => UNANSWERED),
    2,
  );
  expect(await heldFor()).toBeUndefined();
  const { signer } = desk.rulesOf(KEY);
  await rounds(desk.makeLane(WALLET, { signer, hasKey: () => true }), 1);
  expect(await heldFor()).toBeGreaterThan(115);
});

it("is said where rules refuse for now, as they do not ask who has the key", async () => {
  const refused: SigningOutcome = {
    kind: "refused",
    code: "FEE_ABOVE_MAXIMUM",
    reason: "too dear",
    isLasting: false,
  };
  let answer: SigningOutcome | undefined = refused;
  const lane = laneThatHears(() => answer);
  await desk.request(asked);
  await rounds(lane, 3);
  expect(await heldFor()).toBeGreaterThan(115);
  answer = UNANSWERED;
  await rounds(lane, 1);
  answer = refused;
  await rounds(lane, 2);
  expect(await heldFor()).toBeUndefined();
});

describe("a key in doubt behind which nothing is open", () => {
  let answer: SigningOutcome | undefined;
  let texts: string[];
  let isThere: boolean;
  let nowMs: number;
  let killSwitch: KillSwitch;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  let lane: Lane;

  /** A payment whose transfer of nothing nobody signs, mined by its own bytes. */
  beforeEach(async () => {
    [answer, texts, isThere, nowMs] = [undefined, [], false, Date.UTC(2026, 10, 30)];
    killSwitch = { read: async () => SWITCH_UNTOUCHED };
    const provesKey: Signer["provesKey"] = async (text) => {
      texts.push(text);
      return isThere;
    };
    const given = { clock, killSwitch: { read: () => killSwitch.read() } };
    lane = laneThatHears(() => answer, given, provesKey);
    const { id } = await desk.request(asked);
    await rounds(lane, 2);
    answer = UNANSWERED;
    expect(await cancelWithdrawal(desk.database, id, "drill")).toBe("done");
    await rounds(lane, 2);
    expect([await heldFor(), texts]).toEqual([undefined, []]);
    desk.chain.mine();
    await rounds(lane, 2);
    expect((await desk.read(id)).status).toBe("settled");
  });

  it("is asked for a text that pays nobody, once a minute, and held once that is signed", async () => {
    expect(texts).toEqual([
      `Causeway asks whether the key of ${WALLET} is there, at 2026-11-30T00:00:00.000Z. This pays nobody.`,
    ]);
    nowMs += 59_999;
    await rounds(lane, 2);
    expect([await heldFor(), texts.length]).toEqual([undefined, 1]);
    nowMs += 1;
    await rounds(lane, 2);
    expect([await heldFor(), texts.length]).toEqual([undefined, 2]);
    isThere = true;
    nowMs += 60_000;
    await rounds(lane, 2);
    expect(await heldFor()).toBeGreaterThan(115);
    expect(texts).toHaveLength(3);
    expect(new Set(texts).size).toBe(3);
  });

  it("is asked for nothing while signing is stopped, and is in doubt still", async () => {
    [isThere, nowMs] = [true, nowMs + 60_000];
    killSwitch = { read: async () => ({ ...SWITCH_UNTOUCHED, level: "stop-sign" }) };
    await rounds(lane, 2);
    expect([await heldFor(), texts.length]).toEqual([undefined, 1]);
  });

  it("is asked for a payment alone while one waits for it", async () => {
    [isThere, nowMs] = [true, nowMs + 60_000];
    await desk.request({ ...asked, key: "k2", to: destination(2) });
    await lane.runRound(desk.signal);
    const count = texts.length;
    isThere = false;
    answer = UNANSWERED;
    await desk.request({ ...asked, key: "k3", to: destination(3) });
    await rounds(lane, 2);
    nowMs += 120_000;
    await rounds(lane, 2);
    expect([await heldFor(), texts.length]).toEqual([undefined, count]);
  });
});
