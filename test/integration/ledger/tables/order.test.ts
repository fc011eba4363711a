/** Rows come in the order of their numbers, on every page, however many digits those have. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../../chain/hex.js";
import { listSightings, recordSightings } from "../../../../ledger/assets/token-sightings.js";
import { UNASSIGNED } from "../../../../ledger/journal/accounts.js";
import { assignmentsAfter } from "../../../../ledger/deposits/deposit-addresses.js";
import { activatePolicy, activePolicyHash } from "../../../../ledger/policy/policy-store.js";
import { readKeptDeposits } from "../../../../ledger/tamper/read-export.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { openTestLedger, type TestLedger } from "../../../helpers/services/ledger.js";
import { policyOf } from "../../policy/terms.js";

/** More than nine, in more than one page. */
const ROWS = 12;
const PAGE = 5;

/** More than a page of an export. */
const DEPOSITS = 1_200;

let ledger: TestLedger;

const addressOf = (n: number) => testAddress(0xabc000 + n);
const hashOf = (n: number) => parseHash32(`0x${n.toString(16).padStart(64, "0")}`);
const counted = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

beforeAll(async () => {
  ledger = await openTestLedger();
  const { owner } = ledger;
  await owner.query(`INSERT INTO customer (id) VALUES ('alice')`);
  await owner.query(
    `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
     SELECT place - 1, address, $2, 0, true
       FROM unnest($1::text[]) WITH ORDINALITY AS a (address, place) ORDER BY place`,
    [counted(ROWS).map(addressOf), UNASSIGNED],
  );
});
afterAll(() => ledger.drop());

/** All rows of a list that is read page by page, by what tells each. */
async function pages<Row extends { readonly id: number }>(
  read: (page: { readonly afterId: number; readonly limit: number }) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const page = await read({ afterId: rows.at(-1)?.id ?? 0, limit: PAGE });
    rows.push(...page);
    if (page.length < PAGE) return rows;
  }
}

it("of policies that came into force the last one is known, and one of before counts anew", async () => {
  const policies = counted(ROWS).map((n) => policyOf({ feeUnits: BigInt(n) }));
  for (const policy of policies) {
    expect((await activatePolicy(ledger.owner, () => policy)).isNew).toBe(true);
    expect(await activePolicyHash(ledger.owner)).toBe(policy.hash);
  }
  for (const policy of policies) {
    expect((await activatePolicy(ledger.owner, () => policy)).isNew).toBe(true);
    expect((await activatePolicy(ledger.owner, () => policy)).isNew).toBe(false);
  }
});

it("of assigned addresses none is left out", async () => {
  await ledger.owner.query(
    `INSERT INTO address_assignment (address, customer_id)
     SELECT address, 'alice' FROM unnest($1::text[]) WITH ORDINALITY AS a (address, place)
      ORDER BY place`,
    [counted(ROWS).map(addressOf)],
  );
  const found = await pages((page) => assignmentsAfter(ledger.owner, page));
  expect(found.map(({ address }) => address)).toEqual(counted(ROWS).map(addressOf));
});

it("of sightings none is left out", async () => {
  for (const n of counted(ROWS)) {
    const seen = { height: n, blockHash: hashOf(n), txHash: hashOf(n), txIndex: 0, opIndex: 1 };
    const claim = { standard: "erc20", claimed: 9n, reason: "UNKNOWN_TOKEN" } as const;
    const places = { contract: testAddress(1), address: addressOf(n), sender: undefined };
    await recordSightings(ledger.owner, [{ ...seen, ...claim, ...places }], 0);
  }
  const found = await pages((page) => listSightings(ledger.owner, page));
  expect(found.map(({ height }) => height)).toEqual(counted(ROWS));
});

it("of an export's deposits none is left out", async () => {
  await ledger.owner.query(
    `INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height,
                          block_hash, tx_hash, tx_index, op_index, rewind)
     SELECT n || '-0-0', $1, 'alice', 'TOKEN', 1, 'detected', n, $2, $2, 0, 0, 0
       FROM generate_series(1, $3::integer) AS n ORDER BY n`,
    [addressOf(1), hashOf(1), DEPOSITS],
  );
  const found: string[] = [];
  for await (const { depositId } of readKeptDeposits(ledger.owner)) found.push(depositId);
  expect(found).toEqual(counted(DEPOSITS).map((n) => `${n}-0-0`));
});
