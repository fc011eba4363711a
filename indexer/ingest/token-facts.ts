/**
 * What contracts say of themselves: names and decimals, read once and distrusted; and whether a pair
 * is the pair that somebody logged it to be.
 */
import { bytesToAddress } from "../../chain/address.js";
import { decodeForeignText, ERC20_SELECTORS, PAIR_SELECTORS } from "../../chain/evm/erc20.js";
import { bytesToBigint, type Height, type Hex } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import type { Clock } from "../../runtime/process/clock.js";
import { LAST_HEIGHT } from "../store/schema.js";
import { type BatchTarget, stateOf, type Tip } from "./batch-write.js";
import { RoundTime } from "./round-time.js";

/** The node as far as contracts go. */
export type FactSource = Pick<EvmClient, "contractViews">;

/** Characters of a name or symbol that are kept. */
const MAX_TEXT_CHARACTERS = 64;

/** Contracts asked in one round, as far as there is time. */
const CONTRACTS_PER_ROUND = 20;

/**
 * Contracts asked in one exchange: with the dearest code that there is one view takes a quarter of a second
 * (`contract-views.ts`), so that an exchange is over in as long as one for balances.
 */
const CONTRACTS_AT_ONCE = 2;

/** Decimals are asked for again after so many blocks: some contracts change them. */
const REREAD_BLOCKS = 10_000;

const FACTS: readonly Hex[] = [
  ERC20_SELECTORS.name,
  ERC20_SELECTORS.symbol,
  ERC20_SELECTORS.decimals,
  ERC20_SELECTORS.totalSupply,
];

const PAIR_FACTS: readonly Hex[] = [
  PAIR_SELECTORS.factory,
  PAIR_SELECTORS.token0,
  PAIR_SELECTORS.token1,
];

/** How a round is bounded. */
export interface FactRoundOptions extends RpcOptions {
  /** Only contracts that were first seen up to here, and none again. */
  readonly upTo?: Height;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** One round at the tip; returns how many contracts were asked. */
export async function readTokenFacts(
  { session, schema }: BatchTarget,
  tip: Tip,
  node: FactSource,
  options: FactRoundOptions,
): Promise<number> {
  const time = new RoundTime(options.clock);
  const again = options.upTo === undefined ? tip.height - REREAD_BLOCKS : 0;
  // Apart, because the index would be gone through to its end for both at once where there are none.
  const rows = await session.query<{ address: Buffer }>(
    `(SELECT address FROM ${schema}.token
      WHERE metadata_height IS NULL AND first_seen <= $3 LIMIT $2)
     UNION ALL
     (SELECT address FROM ${schema}.token WHERE metadata_height < $1
      ORDER BY metadata_height LIMIT $2) LIMIT $2`,
    [again, CONTRACTS_PER_ROUND, options.upTo ?? LAST_HEIGHT],
  );
  let asked = 0;
  for (const some of time.asFarAsThereIsTime(exchangesOf(rows))) {
    const answers = await ask(some, FACTS, tip, node, options);
    for (const [index, { address }] of some.entries()) {
      await storeFacts({ session, schema }, tip, address, answers[index] ?? []);
    }
    asked += some.length;
  }
  return asked;
}

async function storeFacts(
  { session, schema }: BatchTarget,
  tip: Tip,
  address: Buffer,
  [name, symbol, decimals, supply]: readonly (Uint8Array | undefined)[],
): Promise<void> {
  const places = wordOf(decimals);
  await session.query(
    `UPDATE ${schema}.token SET
       name = CASE WHEN metadata_height IS NULL THEN $2 ELSE name END,
       symbol = CASE WHEN metadata_height IS NULL THEN $3 ELSE symbol END,
       is_consistent = is_consistent
         AND (metadata_height IS NULL OR decimals IS NOT DISTINCT FROM $4::smallint),
       decimals = CASE WHEN metadata_height IS NULL OR decimals IS NOT DISTINCT FROM $4::smallint
         THEN $4::smallint END,
       total_supply = $5, metadata_height = $6
     WHERE address = $1`,
    [
      address,
      textOf(name),
      textOf(symbol),
      places !== undefined && places <= 255n ? Number(places) : null,
      wordOf(supply)?.toString() ?? null,
      tip.height,
    ],
  );
}

/** `getPair(address,address)` of Uniswap V2's factories. */
const GET_PAIR = "e6a43905";

/** Where a round over pairs begins. */
export interface PairRoundOptions extends FactRoundOptions {
  /** The pair that was asked last; the first ones come next without. */
  readonly after: Buffer | undefined;
}

/** What a round over pairs came to. */
export interface PairRound {
  readonly asked: number;
  /** The pair behind which the next round begins, so that each has its turn. */
  readonly last: Buffer | undefined;
}

/**
 * Asks pairs that nobody asked yet for what was logged of them. A pair is confirmed when the factory that
 * it names has it as the pair of the tokens that it names: then what it says takes the place of the log.
 * Rounds with `upTo` go through them once: anybody can log something else of an old pair with every block,
 * and a run that is to end would never be done with asking again.
 */
export async function confirmPairs(
  target: BatchTarget,
  tip: Tip,
  node: FactSource,
  options: PairRoundOptions,
): Promise<PairRound> {
  const time = new RoundTime(options.clock);
  const { session, schema } = target;
  const { after = Buffer.alloc(0), upTo } = options;
  const rows = await session.query<{ address: Buffer }>(
    `(SELECT address FROM ${schema}.pair
      WHERE is_confirmed IS NULL AND address > $2 AND height <= $3
      ORDER BY address LIMIT $1)
     UNION ALL
     (SELECT address FROM ${schema}.pair
      WHERE is_confirmed IS NULL AND address <= $2 AND height <= $3
      ORDER BY address LIMIT $4) LIMIT $1`,
    [CONTRACTS_PER_ROUND, after, upTo ?? LAST_HEIGHT, upTo === undefined ? CONTRACTS_PER_ROUND : 0],
  );
  let asked = 0;
  for (const some of time.asFarAsThereIsTime(exchangesOf(rows))) {
    await storeConfirmed(target, some, await confirmedOf(some, tip, node, options));
    asked += some.length;
  }
  return { asked, last: rows[asked - 1]?.address ?? options.after };
}

/** What a pair says of itself. */
interface PairClaim {
  readonly address: Buffer;
  readonly factory: Buffer;
  readonly token0: Buffer;
  readonly token1: Buffer;
}

/** Those of some pairs of which their factories say the same. */
async function confirmedOf(
  rows: readonly { readonly address: Buffer }[],
  tip: Tip,
  node: FactSource,
  options: RpcOptions,
): Promise<readonly PairClaim[]> {
  const answers = await ask(rows, PAIR_FACTS, tip, node, options);
  const claims = rows.flatMap(({ address }, index): PairClaim[] => {
    const [factory, token0, token1] = (answers[index] ?? []).map(accountOf);
    if (factory === undefined || token0 === undefined || token1 === undefined) return [];
    return [{ address, factory, token0, token1 }];
  });
  const views = claims.map(({ factory, token0, token1 }) => ({
    contract: bytesToAddress(factory),
    data: `0x${GET_PAIR}${wordHex(token0)}${wordHex(token1)}` as const,
    at: stateOf(tip),
  }));
  const known = views.length === 0 ? [] : await node.contractViews(views, options);
  return claims.filter(({ address }, index) => accountOf(known[index])?.equals(address) === true);
}

async function storeConfirmed(
  { session, schema }: BatchTarget,
  rows: readonly { readonly address: Buffer }[],
  confirmed: readonly PairClaim[],
): Promise<void> {
  await session.query(
    `UPDATE ${schema}.pair p SET is_confirmed = c.address IS NOT NULL,
       factory = coalesce(c.factory, p.factory), token0 = coalesce(c.token0, p.token0),
       token1 = coalesce(c.token1, p.token1)
     FROM unnest($1::bytea[]) AS asked (address)
     LEFT JOIN unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[])
       AS c (address, factory, token0, token1) USING (address)
     WHERE p.address = asked.address`,
    [
      rows.map(({ address }) => address),
      confirmed.map(({ address }) => address),
      confirmed.map(({ factory }) => factory),
      confirmed.map(({ token0 }) => token0),
      confirmed.map(({ token1 }) => token1),
    ],
  );
}

function exchangesOf<T>(rows: readonly T[]): T[][] {
  const count = Math.ceil(rows.length / CONTRACTS_AT_ONCE);
  return Array.from({ length: count }, (_, index) =>
    rows.slice(index * CONTRACTS_AT_ONCE, (index + 1) * CONTRACTS_AT_ONCE),
  );
}

/** An address as an argument of a call. */
function wordHex(address: Buffer): string {
  return address.toString("hex").padStart(64, "0");
}

async function ask(
  rows: readonly { readonly address: Buffer }[],
  selectors: readonly Hex[],
  tip: Tip,
  node: FactSource,
  options: RpcOptions,
): Promise<(Uint8Array | undefined)[][]> {
  const views = rows.flatMap(({ address }) =>
    selectors.map((data) => ({ contract: bytesToAddress(address), data, at: stateOf(tip) })),
  );
  const answers = await node.contractViews(views, options);
  return rows.map((_, index) =>
    answers.slice(index * selectors.length, (index + 1) * selectors.length),
  );
}

function textOf(bytes: Uint8Array | undefined): string | null {
  return bytes === undefined ? null : (decodeForeignText(bytes, MAX_TEXT_CHARACTERS) ?? null);
}

function wordOf(bytes: Uint8Array | undefined): bigint | undefined {
  return bytes?.length === 32 ? bytesToBigint(bytes) : undefined;
}

function accountOf(bytes: Uint8Array | undefined): Buffer | undefined {
  if (bytes?.length !== 32 || bytes.subarray(0, 12).some((byte) => byte !== 0)) return undefined;
  return Buffer.from(bytes.subarray(12));
}
