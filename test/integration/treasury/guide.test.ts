/** The commands of docs/treasury.md, run as they stand over a ledger with sweeps. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { toChecksumAddress } from "../../../chain/address.js";
import { hexlify, keccak256, Wallet } from "ethers";
import { parsePolicy } from "../../../ledger/policy/policy-parser.js";
import { hashPolicy, PERMISSIVE_POLICY, policyFileText } from "../../../ledger/policy/policy.js";
import { askForRefill } from "../../../ledger/treasury/refills.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { Desk, KEY, WALLET } from "../recovery/desk.js";

const page = readFileSync("docs/treasury.md", "utf8");

let desk: Desk;

beforeAll(async () => {
  desk = await Desk.openWithAlice();
});
afterAll(() => desk.close());

/** Runs a command of the page: it has to have it. */
function run(command: string, values: Readonly<Record<string, string>> = {}) {
  expect(page).toContain(`npm run causeway -- ${command}\n`);
  const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => {
    const word = quoted ?? plain ?? "";
    const name = /^<([a-z]+)>$/.exec(word)?.[1];
    return name === undefined ? word : (values[name] ?? `missing ${name}`);
  });
  return desk.causeway(...words);
}

it("shows a policy section that is one", () => {
  const [, section = ""] = /```json\n([\s\S]*?)```/.exec(page) ?? [];
  const text = policyFileText(PERMISSIVE_POLICY).replace(/}\s*$/, `, ${section} }`);
  const { policy, faults } = parsePolicy(text);
  expect(faults).toEqual([]);
  const treasury = policy?.treasury;
  expect(treasury?.assets.get("TOKEN")?.band?.targetUnits).toBe(500n * 10n ** 18n);
  // Without the section the hash is what it was before there was any.
  expect(hashPolicy(PERMISSIVE_POLICY).text).not.toContain("treasury");
  const wrong = parsePolicy(text.replace(`"lowUnits": "1`, `"lowUnits": "9`));
  expect(wrong.faults.map(({ key }) => key)).toEqual(["treasury.assets.TOKEN.band"]);
});

it("shows where the coins are, and ends with 1 while it asks for a refill", async () => {
  const quiet = await run("treasury status");
  expect(quiet.code).toBe(0);
  expect(quiet.text).toContain("TOKEN: hot wallets ");
  await askForRefill(desk.database, { asset: "TOKEN", amountUnits: 5n * 10n ** 18n });
  const asking = await run("treasury status");
  expect(asking.code).toBe(1);
  expect(asking.text).toContain(
    "send 5 TOKEN from cold storage to a hot wallet whose key a worker holds: " +
      toChecksumAddress(WALLET),
  );
  await desk.database.query(`UPDATE refill_request SET wallet = $1`, [WALLET]);
  const named = await run("treasury status");
  expect(named.text).toContain(`from cold storage to the hot wallet ${toChecksumAddress(WALLET)}:`);
  // No worker says that it holds the wallet's key any more.
  await desk.database.query(`UPDATE hot_wallet SET key_held_until = now() - interval '1 second'`);
  for (const wallet of [WALLET, null]) {
    await desk.database.query(`UPDATE refill_request SET wallet = $1`, [wallet]);
    const keyless = await run("treasury status");
    expect(keyless).toMatchObject({ code: 0, text: expect.stringContaining("NO KEY") });
    expect(keyless.text).not.toContain("REFILL");
  }
});

it("lists sweeps, and lets a frozen one go on", async () => {
  expect(await run("sweeps list")).toMatchObject({ code: 0 });
  const none = await desk.causeway("sweeps", "list", "--state", "frozen");
  expect(none).toMatchObject({ code: 0, text: "No sweeps." });
  const [row] = await desk.database.query<{ address: string }>(
    `SELECT address FROM deposit_address ORDER BY index LIMIT 1`,
  );
  await desk.database.query(
    `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce, gas_price_atoken,
       state) VALUES ($1, 'TOKEN', $2, 10, 21000, 0, 1, 'ready')`,
    [row?.address, WALLET],
  );
  const bytes = { type: 0, chainId: FAKE_CHAIN_ID, nonce: 0, to: WALLET, value: 10n };
  const gas = { gasPrice: 1n, gasLimit: 21_000n };
  const raw = await new Wallet(hexlify(KEY)).signTransaction({ ...bytes, ...gas });
  await desk.database.query(
    `INSERT INTO sweep_attempt (sweep_id, n, raw, hash, gas_price_atoken)
     SELECT id, 0, $1, $2, 1 FROM sweep`,
    [raw, keccak256(raw)],
  );
  await desk.database.query(`UPDATE sweep SET state = 'signed'`);
  await desk.database.query(`UPDATE sweep SET state = 'frozen', reason = 'a test'`);
  const frozen = await run("sweeps list");
  expect(frozen.code).toBe(1);
  expect(frozen.text).toContain("frozen");
  const id = /^(\d+)/.exec(frozen.text)?.[1] ?? "";
  const released = await run(`sweeps release <id> --reason "<reason>"`, { id, reason: "looked" });
  expect([released.code, released.text]).toEqual([0, expect.stringContaining("sent again")]);
  expect(await run("sweeps list")).toMatchObject({ code: 0 });
});

it("says that a sweep is frozen, and that there are more, where it is none of the oldest", async () => {
  const { address } = await desk.register("bob");
  await desk.database.query(
    `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce, gas_price_atoken,
       state) VALUES ($1, 'TOKEN', $2, 10, 21000, 0, 1, 'ready')`,
    [address, WALLET],
  );
  await desk.database.query(
    `UPDATE sweep SET state = 'frozen', reason = 'a test' WHERE address = $1`,
    [address],
  );
  const oldest = await desk.causeway("sweeps", "list", "--limit", "1");
  const [shown, more] = oldest.text.split("\n");
  expect([oldest.code, shown]).toEqual([1, expect.stringContaining("signed")]);
  const rest = await desk.causeway(
    "sweeps",
    "list",
    ...String(more).replace("more: ", "").split(" "),
  );
  expect([rest.code, rest.text]).toEqual([1, expect.stringContaining("frozen")]);
  await expect(desk.causeway("sweeps", "list", "--limit", "0")).rejects.toThrow("from 1 to");
});
