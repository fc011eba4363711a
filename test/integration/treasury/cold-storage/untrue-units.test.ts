/** A token whose contract gives out more than there can be of any: bands and refills of all assets go on. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { MAX_WORD } from "../../../../chain/hex.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { nameColdAddresses } from "../../../../ledger/treasury/moves.js";
import { askForRefill } from "../../../../ledger/treasury/refills.js";
import { bookTreasuryFlows } from "../../../../ledger/treasury/treasury-flows.js";
import { acceptWithdrawals } from "../../../../ledger/withdrawals/withdrawals.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { requestOf, WALLET } from "../../../helpers/exchange/house.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { callOf } from "../../tokens/token-bench.js";
import { ANY_SWEEP, COLD, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;

/** So many times all that there can be is beyond what a column of a word's digits takes. */
const TIMES = 10;

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: ONE }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench?.close());

function refills(): Promise<{ asset: string; amount: string; came: string; state: string }[]> {
  return bench.bench.ledger.owner.query(
    `SELECT asset, amount_units::text AS amount, came_units::text AS came, state
       FROM refill_request ORDER BY asset`,
  );
}

it("keeps no refill of another asset from being asked for", async () => {
  const addresses = [];
  for (let n = 0; n < TIMES; n += 1) addresses.push(await bench.bench.register("alice"));
  await bench.bench.caughtUp();
  await bench.bench.mine(addresses.map((to) => callOf("PlainToken", "mint", [to, MAX_WORD])));
  await bench.mine();
  await bench.mine();
  const asked = await acceptWithdrawals(
    bench.worker,
    addresses.map((_, n) => ({
      ...requestOf({
        customerId: parseCustomerId("alice"),
        asset: "PLAIN",
        amountUnits: MAX_WORD,
      }),
      idempotencyKey: `all of it ${n}`,
    })),
    ANY_REQUEST,
  );
  expect(asked.map(({ outcome }) => outcome)).toEqual(addresses.map(() => "accepted"));
  const band = { lowUnits: 2n * ONE, targetUnits: 2n * ONE, highUnits: 3n * ONE };
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: MAX_WORD, coldAddress: COLD, band };
  bench.files.policy = bench.policyOf({
    topUpMaxAtoken: 0n,
    assets: { PLAIN: rules, TOKEN: rules },
  });
  await bench.rounds(2);
  expect(await refills()).toMatchObject([
    { asset: "PLAIN", amount: `${MAX_WORD}`, state: "open" },
    { asset: "TOKEN", state: "open" },
  ]);
});

it("stops no block by what it says that came from cold storage", async () => {
  const { ledger } = bench.bench;
  await nameColdAddresses(bench.worker, [{ asset: "MOODY", address: COLD }]);
  await askForRefill(bench.worker, { asset: "MOODY", amountUnits: MAX_WORD });
  const walletInflows = Array.from({ length: TIMES }, (_, opIndex) => ({
    asset: "MOODY",
    wallet: testAddress(0x900 + opIndex),
    amountUnits: MAX_WORD,
    height: 5,
    txHash: `0x${"ab".repeat(32)}` as const,
    txIndex: 0,
    opIndex,
    sender: COLD,
  }));
  const flows = { walletInflows, outflows: [], deposits: [], rewinds: 0 };
  const left = await ledger.database.transaction((tx) => bookTreasuryFlows(tx, flows as never));
  expect(left.walletInflows).toEqual([]);
  const moody = { asset: "MOODY", amount: `${MAX_WORD}`, came: `${MAX_WORD}`, state: "filled" };
  expect(await refills()).toContainEqual(moody);
});
