/**
 * What contracts say of themselves: names and decimals, read once and distrusted; and whether a pair
 * is the pair that somebody logged it to be.
 */
import { bytesToAddress } from "../../chain/address.js";
import { decodeForeignText, ERC20_SELECTORS } from "../../chain/erc20.js";
import { bytesToBigint, type Hex } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import type { BatchTarget, Tip } from "./batch-write.js";

/** The node as far as contracts go. */
export type FactSource = Pick<EvmClient, "contractViews">;

/** Characters of a name or symbol that are kept. */
const MAX_TEXT_CHARACTERS = 64;

/** Contracts asked in one round. */
const ROUND = 20;

/** Decimals are asked for again after so many blocks: some contracts change them. */
const REREAD_BLOCKS = 10_000;

const FACTS: readonly Hex[] = [
  ERC20_SELECTORS.name,
  ERC20_SELECTORS.symbol,
  ERC20_SELECTORS.decimals,
  ERC20_SELECTORS.totalSupply,
];

/** `factory()`, `token0()`, `token1()` of Uniswap V2's pairs. */
const PAIR_FACTS: readonly Hex[] = ["0xc45a0155", "0x0dfe1681", "0xd21220a7"];

/** One round at the tip; returns how many contracts were asked. */
export async function readTokenFacts(
  { session, schema }: BatchTarget,
  tip: Tip,
  node: FactSource,
  options: RpcOptions,
): Promise<number> {
  const rows = await session.query<{ address: Buffer }>(
    `SELECT address FROM ${schema}.token
     WHERE metadata_height IS NULL OR metadata_height < $1
     ORDER BY metadata_height NULLS FIRST LIMIT $2`,
    [tip.height - REREAD_BLOCKS, ROUND],
  );
  const answers = await ask(rows, FACTS, tip, node, options);
  for (const [index, { address }] of rows.entries()) {
    const [name, symbol, decimals, supply] = answers[index] ?? [];
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
  return rows.length;
}

/** Asks pairs that nobody asked yet; what a pair says of itself takes the place of the log. */
export async function confirmPairs(
  { session, schema }: BatchTarget,
  tip: Tip,
  node: FactSource,
  options: RpcOptions,
): Promise<number> {
  const rows = await session.query<{ address: Buffer }>(
    `SELECT address FROM ${schema}.pair WHERE is_confirmed IS NULL LIMIT $1`,
    [ROUND],
  );
  const answers = await ask(rows, PAIR_FACTS, tip, node, options);
  for (const [index, { address }] of rows.entries()) {
    const [factory, token0, token1] = (answers[index] ?? []).map(accountOf);
    const isPair = factory !== undefined && token0 !== undefined && token1 !== undefined;
    await session.query(
      `UPDATE ${schema}.pair SET is_confirmed = $2, factory = coalesce($3, factory),
         token0 = coalesce($4, token0), token1 = coalesce($5, token1)
       WHERE address = $1`,
      [address, isPair, ...(isPair ? [factory, token0, token1] : [null, null, null])],
    );
  }
  return rows.length;
}

async function ask(
  rows: readonly { readonly address: Buffer }[],
  selectors: readonly Hex[],
  tip: Tip,
  node: FactSource,
  options: RpcOptions,
): Promise<(Uint8Array | undefined)[][]> {
  if (rows.length === 0) return [];
  const views = rows.flatMap(({ address }) =>
    selectors.map((data) => ({ contract: bytesToAddress(address), data, at: tip.height })),
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
