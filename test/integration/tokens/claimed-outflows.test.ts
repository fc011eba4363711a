/** A listed token that says it took of the hot wallet, and moved nothing: no payment stops for it. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../chain/hex.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import { listSightings } from "../../../ledger/assets/token-sightings.js";
import { WALLET } from "../../helpers/exchange/house.js";
import { callOf, contractAt, ISSUER, THIEF, TokenBench, TOKENS } from "./token-bench.js";

const LISTED = [
  ...TOKENS,
  { symbol: "FORGED", contractAddress: contractAt("Forger"), decimals: 0 },
];

let bench: TokenBench;

beforeAll(async () => {
  bench = await TokenBench.open(undefined, LISTED);
  await bench.watch(LISTED);
  await bench.deploy();
  await bench.mine([
    callOf("PlainToken", "mint", [WALLET, 900n]),
    { to: WALLET, value: 10n ** 18n },
  ]);
});
afterAll(() => bench?.close());

const outflows = () =>
  bench.database.query(
    `SELECT tx_hash, amount_units::text AS units FROM foreign_outflow WHERE asset <> 'TOKEN'`,
  );

it("records what did not leave, at both ends of the claim, and signs on", async () => {
  const alice = await bench.register("alice");
  await bench.caughtUp();
  const [claim = "0x" as Hash32] = await bench.mine([
    callOf("Forger", "fungible", [WALLET, alice, 5n]),
    callOf("Forger", "fungible", [WALLET, ISSUER.address, 2n ** 256n - 1n]),
  ]);
  await bench.mine([]);
  await bench.caughtUp();
  const rows = await listSightings(bench.database, { txHash: claim, afterId: 0, limit: 10 });
  expect(rows.map(({ address, reason, claimed }) => `${address} ${reason} ${claimed}`)).toEqual([
    `${WALLET} NOT_LEFT 5`,
    `${alice} NOT_ARRIVED 5`,
  ]);
  expect(await outflows()).toEqual([]);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(false);
  const forged = (await bench.reconcile()).tokens.find(({ asset }) => asset === "FORGED");
  expect(forged?.lines.map(({ differenceUnits }) => differenceUnits)).toEqual([0n, 0n]);
});

it("freezes as before where the balance falls", async () => {
  const stolen = callOf("PlainToken", "transfer", [ISSUER.address, 30n]);
  const [hash] = await bench.mine([{ from: THIEF, ...stolen }]);
  await bench.mine([]);
  await bench.caughtUp();
  expect(await outflows()).toEqual([{ tx_hash: hash, units: "30" }]);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(true);
});
