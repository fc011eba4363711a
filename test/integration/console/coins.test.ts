/** The page of the treasury over real APIs: what a person has to do about coins, and by which command. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseAddress, toChecksumAddress } from "../../../chain/address.js";
import { hashPolicy } from "../../../ledger/policy/policy.js";
import { holdKeys } from "../../helpers/exchange/held-keys.js";
import { type Browser, ConsoleStage } from "../../helpers/pages/console.js";
import { all } from "../../helpers/pages/html.js";

const ONE = 10n ** 18n;

let stage: ConsoleStage;
let viewer: Browser;

beforeAll(async () => {
  stage = await ConsoleStage.open();
  await stage.bench.register("alice");
  viewer = await stage.login("the-viewer", "viewer");
});
afterAll(() => stage.close());

it("shows bands, what is to be refilled, and sweeps that wait for a person", async () => {
  const { owner } = stage.bench.ledger;
  const cold = parseAddress(`0x${"c0".repeat(20)}`);
  const assets = new Map([
    [
      "TOKEN",
      {
        sweepMinimumUnits: 1n,
        sweepFeeMaxAtoken: 1n,
        coldAddress: cold,
        band: { lowUnits: 7n * ONE, targetUnits: 8n * ONE, highUnits: 9n * ONE },
      },
    ],
  ]);
  const before = stage.policy;
  stage.policy = hashPolicy({ ...before.policy, treasury: { topUpMaxAtoken: 1n, assets } });
  await owner.query(
    `INSERT INTO refill_request (asset, amount_units, came_units)
     VALUES ('TOKEN', ${8n * ONE}, ${ONE / 2n})`,
  );
  const [held] = await owner.query<{ address: string }>(`SELECT address FROM deposit_address`);
  const [hot] = await owner.query<{ address: string }>(`SELECT address FROM wallet`);
  await owner.query(
    `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce, gas_price_atoken,
       state, reason)
     VALUES ($1, 'TOKEN', $2, 5, 21000, 0, 1, 'frozen', 'nonce 0 was used by somebody else')`,
    [held?.address, hot?.address],
  );
  await owner.query(`UPDATE hot_wallet SET key_held_until = NULL`);
  expect((await viewer.get("/treasury")).text).not.toContain("from cold storage");
  await holdKeys(owner, [parseAddress(hot?.address ?? "")]);
  const seen = await viewer.get("/treasury");
  for (const text of [
    "send 7.5 TOKEN from cold storage",
    cold,
    "9 TOKEN",
    "A refill is asked for",
    "Frozen sweeps of TOKEN: 1.",
    "nonce 0 was used by somebody else",
    "causeway -- sweeps release",
  ]) {
    expect(seen.text).toContain(text);
  }
  const place = toChecksumAddress(parseAddress(hot?.address ?? ""));
  expect(seen.text).toContain(`to a hot wallet whose key a worker holds: ${place}.`);
  await owner.query(`UPDATE refill_request SET wallet = $1`, [hot?.address]);
  const named = await viewer.get("/treasury");
  expect(named.text).toContain(`send 7.5 TOKEN to ${place}, and to no other, from cold storage.`);
  expect(named.text).not.toContain("whose key a worker holds");
  expect(all(seen.root, "form").map(({ attributes }) => attributes.get("method"))).toEqual([
    "post",
    "get",
  ]);
  const settled = await viewer.get("/treasury?state=settled");
  expect(settled.text).toContain("There is no sweep.");
  await owner.query(`UPDATE sweep SET state = 'foreign' WHERE state = 'frozen'`);
  await owner.query(`UPDATE refill_request SET state = 'withdrawn'`);
  stage.policy = before;
});
