/** Requests for coins of cold storage: when they end, whichever of watcher and treasury looks first. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { ISSUER } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { standing } from "../../../helpers/services/ledger.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: ONE }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

beforeEach(async () => {
  ask((await bench.units(WALLET)) * 2n);
  await bench.rounds(2);
  expect((await requests()).at(-1)).toMatchObject({ state: "open", came: "0" });
});

/** The policy's band: below `lowUnits` a refill up to it is asked for. */
function ask(lowUnits: bigint): void {
  const band = { lowUnits, targetUnits: lowUnits, highUnits: 10n ** 24n };
  const coldAddress = parseAddress(ISSUER.address.toLowerCase());
  bench.files.policy = bench.policyOf({ assets: { TOKEN: { ...ANY_SWEEP, coldAddress, band } } });
}

function requests(): Promise<{ state: string; came: string; amount: string }[]> {
  return bench.bench.ledger.owner.query(
    `SELECT state, came_units::text AS came, amount_units::text AS amount
       FROM refill_request ORDER BY id`,
  );
}

/** The treasury looks while the watcher has not booked the newest blocks. */
async function lookAhead(
  blocks: readonly (readonly { to: typeof WALLET; value: bigint }[])[],
): Promise<void> {
  await standing(bench.bench.ledger.owner, async (tx) => {
    await tx.query(`SELECT FROM watch_cursor FOR UPDATE`);
    for (const payments of blocks) {
      await bench.bench.mine(payments);
      bench.house.clock.ms += 3_000;
      bench.clock.ms += 3_000;
      await bench.lane.runRound(signal);
      await bench.sweeper().round(signal);
    }
  });
  await bench.bench.caughtUp();
}

describe("a request for a refill", () => {
  it("is taken back by a treasury that always looks one block before the watcher", async () => {
    ask(1n);
    for (let look = 0; look < 3; look += 1) await lookAhead([[]]);
    expect((await requests()).at(-1)).toMatchObject({ state: "withdrawn", came: "0" });
  });

  it("is not lowered by what the watcher has not booked yet, which fills it", async () => {
    const wanted = BigInt((await requests()).at(-1)?.amount ?? "0");
    const part = wanted / 4n;
    await lookAhead([[{ to: WALLET, value: part }], []]);
    const asked = { state: "open", came: part.toString(), amount: wanted.toString() };
    expect((await requests()).at(-1)).toEqual(asked);
    await lookAhead([[{ to: WALLET, value: wanted - part }]]);
    expect((await requests()).at(-1)).toMatchObject({ state: "filled", came: `${wanted}` });
  });

  it("is filled by what came, however often the treasury saw it before the watcher", async () => {
    const wanted = BigInt((await requests()).at(-1)?.amount ?? "0");
    await lookAhead([[{ to: WALLET, value: wanted }], [], []]);
    await lookAhead([[]]);
    const last = (await requests()).at(-1);
    expect(last).toEqual({ state: "filled", came: wanted.toString(), amount: wanted.toString() });
    await bench.assertEven();
  });

  it.each([
    { what: "has no band for it", policy: () => bench.policyOf({ assets: { TOKEN: ANY_SWEEP } }) },
    { what: "does not name its asset", policy: () => bench.policyOf({ assets: {} }) },
    { what: "has no treasury", policy: () => hashPolicy(PERMISSIVE_POLICY) },
  ])("ends where the policy $what any more", async ({ policy }) => {
    bench.files.policy = policy();
    await bench.rounds(1);
    expect((await requests()).at(-1)).toMatchObject({ state: "withdrawn", came: "0" });
  });

  it("waits anew for the watcher where the wallets had less again in between", async () => {
    const open = (await requests()).at(-1);
    ask(1n);
    await lookAhead([[]]);
    const held = await bench.units(WALLET);
    const much = held * 9n;
    ask(much);
    await lookAhead([[]]);
    // Twice of what is held was asked for before.
    const amount = `${BigInt(open?.amount ?? "0") + much - held * 2n}`;
    expect((await requests()).at(-1)).toEqual({ ...open, amount });
    await lookAhead([[{ to: WALLET, value: much }]]);
    expect((await requests()).at(-1)).toMatchObject({ state: "filled", came: `${much}` });
  });
});
