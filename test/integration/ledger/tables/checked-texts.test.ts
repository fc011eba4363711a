/**
 * Which texts the tables take: those that the expressions of the first releases took, which counted each
 * character, and no other, however the server writes its texts.
 */
import { expect, it } from "@jest/globals";
import { openLedger } from "../../../../ledger/database.js";
import type { Sql } from "../../../../runtime/sql/sql.js";
import { createRandom, type Random } from "../../../helpers/random.js";
import { silentLog, TEST_IDENTITY } from "../../../helpers/services/ledger.js";
import { createTestDatabase } from "../../../helpers/services/postgres.js";

const HEX_64 = "^[0-9a-f]{64}$";
const ADDRESS = "^0x[0-9a-f]{40}$";
const HASH = "^0x[0-9a-f]{64}$";
const NAME = "^[A-Za-z0-9_.:-]{1,64}$";
const ACCOUNT =
  "^(asset:(hot_wallet|deposit_addresses|break|recovered_payments|cold_storage|in_transit)" +
  "|liability:suspense|equity:(opening_capital|adjustment)|expense:(network_fee|write_off)" +
  "|revenue:(failed_payouts|withdrawal_fees)|liability:(customer|held):[A-Za-z0-9_.:-]{1,64}" +
  "|asset:wallet:0x[0-9a-f]{40})$";

/** Each rule about a column, with the expression that counts. */
const RULES = [
  ["posting", "asset", NAME],
  ["posting", "debit", ACCOUNT],
  ["posting", "credit", ACCOUNT],
  ["chain_link", "digest", HEX_64],
  ["chain_link", "previous", HEX_64],
  ["api_call", "body_sha256", HEX_64],
  ["api_call", "signed_digest", HEX_64],
  ["withdrawal", "destination", ADDRESS],
  ["withdrawal", "wallet", ADDRESS],
  ["withdrawal_attempt", "hash", HASH],
  ["deposit", "tx_hash", HASH],
  ["deposit", "block_hash", HASH],
] as const;

const DIGITS = "0123456789abcdef".repeat(8);

/** What each rule takes, some of it only just. */
const FITTING = [
  ...[40, 64].flatMap((digits) => [DIGITS.slice(0, digits), `0x${DIGITS.slice(0, digits)}`]),
  ...["a", "A9_.:-", "TOKEN", "GOLD", "x".repeat(64)].flatMap(accountsOf),
  "asset:hot_wallet",
  "asset:deposit_addresses",
  "asset:break",
  "asset:recovered_payments",
  "asset:cold_storage",
  "asset:in_transit",
  "liability:suspense",
  "equity:opening_capital",
  "equity:adjustment",
  "expense:network_fee",
  "expense:write_off",
  "revenue:failed_payouts",
  "revenue:withdrawal_fees",
  `asset:wallet:0x${DIGITS.slice(0, 40)}`,
];

/** What no rule takes, and what is as long as what one takes. */
const OTHERS = [
  "",
  "0x",
  "0x0",
  "0",
  "x",
  " ",
  "\n",
  "é",
  "字",
  "a/b",
  "asset:",
  "asset:wallet:",
  "a,b",
  "{",
  "}",
  '"',
  "liability:customer:",
  "liability:held:",
  "asset:hot_wallet2",
  "NULL",
  "liability:other:a",
  ...["a", "x".repeat(65), "é".repeat(32), "字".repeat(64)].flatMap(accountsOf),
  ...[39, 41, 63, 65].flatMap((digits) => [
    DIGITS.slice(0, digits),
    `0x${DIGITS.slice(0, digits)}`,
  ]),
  ...[0, 38, 39, 41, 42, 64].map((digits) => `asset:wallet:0x${DIGITS.slice(0, digits)}`),
  ...[20, 32, 40, 42, 64, 66].map((length) => "é".repeat(length)),
];

function accountsOf(name: string): readonly string[] {
  return [name, `liability:customer:${name}`, `liability:held:${name}`];
}

const SEED = 63;

/** Characters that a rule may take for others. */
const ODD = "0aAfFgGxX _:-.\n\t\r\v/\\'é字{},\u00a0";

/** A text that fits, with one to three characters put in, taken out, put otherwise, or in capitals. */
function changed(random: Random): string {
  let text = random.pick(FITTING);
  for (let left = 1 + random.integer(3); left > 0; left -= 1) {
    const at = random.integer(text.length + 1);
    const taken = random.integer(2);
    const put = random.pick([
      ODD.charAt(random.integer(ODD.length)),
      "",
      text.charAt(at).toUpperCase(),
    ]);
    text = text.slice(0, at) + put + text.slice(at + taken);
  }
  return text;
}

/** What is refused by an error is refused, too. */
const TAKES = `
  CREATE FUNCTION pg_temp.takes(rule text, given text) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE
    found boolean;
  BEGIN
    EXECUTE rule INTO found USING given;
    RETURN found;
  EXCEPTION WHEN invalid_parameter_value THEN
    RETURN false;
  END $$`;

/** Functions that say what is an account, of each kind, or a name. */
const FUNCTIONS = [
  [
    "is_account($1) OR is_decision_account($1) OR is_fee_account($1) OR is_wallet_account($1) " +
      "OR is_transit_account($1)",
    ACCOUNT,
  ],
  ["is_name($1)", NAME],
] as const;

/** The rule of a column as the server keeps it, as a question about one text. */
async function ruleOf(tx: Sql, table: string, column: string): Promise<string> {
  const [row] = await tx.query<{ rule: string }>(
    `SELECT pg_get_expr(conbin, conrelid) AS rule FROM pg_constraint
      WHERE conrelid = $1::regclass AND conname = $2`,
    [table, `${table}_${column}_check`],
  );
  if (row === undefined) throw new Error(`${table} has no rule about ${column}`);
  return `SELECT ${row.rule} FROM (SELECT $1::text AS ${column}) AS given`;
}

it.each(["UTF8", "SQL_ASCII"])("takes what counting expressions take, in %s", async (encoding) => {
  const { url, drop } = await createTestDatabase(encoding);
  const { signal } = new AbortController();
  const database = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
  const random = createRandom(SEED);
  const texts = [...FITTING, ...OTHERS, ...Array.from({ length: 4_000 }, () => changed(random))];
  await database.transaction(async (tx) => {
    await tx.query(TAKES);
    const rules = FUNCTIONS.map(([rule, counted]) => ({ rule: `SELECT ${rule}`, counted }));
    for (const [table, column, counted] of RULES) {
      rules.push({ rule: await ruleOf(tx, table, column), counted });
    }
    for (const { rule, counted } of rules) {
      const [judged] = await tx.query<{ taken: number; otherwise: readonly string[] }>(
        // In SQL_ASCII a byte by itself is a text, too.
        `SELECT count(*) FILTER (WHERE taken)::integer AS taken,
                array_agg(DISTINCT given) FILTER (WHERE taken IS DISTINCT FROM given ~ $2) AS otherwise
           FROM (SELECT given, pg_temp.takes($1, given) AS taken
                   FROM (SELECT unnest($3::text[]) UNION ALL
                         SELECT replace(unnest($3::text[]), 'a', chr(233)) UNION ALL
                         SELECT NULL) AS every (given)) AS asked`,
        [rule, counted, texts],
      );
      expect({ rule, otherwise: judged?.otherwise }).toEqual({ rule, otherwise: null });
      expect(judged?.taken).toBeGreaterThan(0);
    }
  });
  await database.close();
  await drop();
});
