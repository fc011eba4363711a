/** A treasury whose host's clock is another one than the database's, by which its moves have their time. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { cancelExpired } from "../../../../ledger/withdrawals/cancellation.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;
const HOUR_MS = 3_600_000;

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 4n * ONE }]);
  await bench.bench.caughtUp();
});
afterEach(() => bench.close());

it.each([
  ["behind", -61 * 60_000],
  ["ahead", 48 * HOUR_MS],
])("pays gas and cold storage in their time, with a clock that is far %s", async (_what, offMs) => {
  const address = await bench.bench.register("alice");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 5n])]);
  await bench.mine();
  const band = { lowUnits: 0n, targetUnits: ONE, highUnits: ONE };
  bench.files.policy = bench.policyOf({
    assets: { TOKEN: { ...ANY_SWEEP, coldAddress: COLD, band }, PLAIN: ANY_SWEEP },
  });
  const { owner } = bench.bench.ledger;
  const clock = { ...bench.clock, nowMs: () => Date.now() + offMs };
  const treasury = bench.sweeper({ clock });
  await treasury.round(signal);
  // As who pays looks for deadlines that are over.
  expect(await cancelExpired(bench.worker, { limit: 10 })).toBe(0);
  await bench.rounds(4, treasury);
  expect(await bench.units(address, "PLAIN")).toBe(0n);
  const moves = await owner.query<Record<"kind" | "state", string> & { lasts: number }>(
    `SELECT DISTINCT m.kind, m.state,
            round(extract(epoch FROM w.expires_at - m.created_at) / 60)::integer AS lasts
       FROM treasury_move m JOIN withdrawal w ON w.id = m.withdrawal_id
      ORDER BY m.kind`,
  );
  expect(moves).toEqual([
    { kind: "cold", state: "arrived", lasts: 60 },
    { kind: "top-up", state: "arrived", lasts: 60 },
  ]);
});
