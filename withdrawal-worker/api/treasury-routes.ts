/** `GET /v1/treasury` and `GET /v1/sweeps`: what the exchange has where, and what it moves. */
import { toChecksumAddress } from "../../chain/address.js";
import { broughtUnits, listSweeps, type Sweep } from "../../ledger/treasury/sweeps.js";
import { asSweepState } from "../../ledger/treasury/sweep-states.js";
import { readTreasury, type TreasuryFigures } from "../../ledger/treasury/treasury-figures.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, KeyedRoute } from "../../runtime/http/http-route.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { invalidField } from "./fields.js";

/** Rows on a page without `limit`, as in the API file. */
const DEFAULT_LIMIT = 100;

/** The routes of `openapi/withdrawal.yaml`. */
export function createTreasuryRoutes(database: SqlDatabase): readonly KeyedRoute[] {
  return [
    {
      method: "get",
      path: "/v1/treasury",
      scope: "withdrawals:read",
      handler: async () => ({
        body: { assets: (await readTreasury(database)).map(encodeFigures) },
      }),
    },
    {
      method: "get",
      path: "/v1/sweeps",
      scope: "withdrawals:read",
      handler: (request) => getPage(database, request),
    },
  ];
}

async function getPage(database: SqlDatabase, { query }: HttpRequest): Promise<HttpReply> {
  const { limit: givenLimit, after, state: asked } = query;
  const limit = typeof givenLimit === "number" ? givenLimit : DEFAULT_LIMIT;
  const state = typeof asked === "string" ? asSweepState(asked) : undefined;
  if (asked !== undefined && state === undefined) throw invalidField("state", "no such state");
  const afterId = typeof after === "string" ? Number(after) : 0;
  const rows = await listSweeps(database, { state, afterId, limit: limit + 1 });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return { body: { sweeps: page.map(encodeSweep), next: hasMore ? String(last.id) : null } };
}

function encodeFigures(figures: TreasuryFigures) {
  const { asset, hotUnits, depositAddressesUnits, inTransitUnits, coldUnits, refill } = figures;
  return {
    asset,
    hotUnits: hotUnits.toString(),
    depositAddressesUnits: depositAddressesUnits.toString(),
    inTransitUnits: inTransitUnits.toString(),
    strandedUnits: figures.strandedUnits.toString(),
    coldUnits: coldUnits.toString(),
    openSweeps: figures.openSweeps,
    frozenSweeps: figures.frozenSweeps,
    refill:
      refill === undefined
        ? null
        : {
            id: refill.id,
            amountUnits: refill.amountUnits.toString(),
            cameUnits: refill.cameUnits.toString(),
            wallet: refill.wallet === undefined ? null : toChecksumAddress(refill.wallet),
            wallets: refill.wallets.map(toChecksumAddress),
          },
  };
}

function encodeSweep(sweep: Sweep) {
  return {
    id: sweep.id,
    address: toChecksumAddress(sweep.address),
    asset: sweep.asset,
    wallet: toChecksumAddress(sweep.wallet),
    amountUnits: broughtUnits(sweep).toString(),
    state: sweep.state,
    reason: sweep.reason ?? null,
    nonce: sweep.gas === undefined ? null : Number(sweep.gas.nonce),
    hashes: sweep.attempts.map(({ hash }) => hash),
    txHash: sweep.minedHash ?? null,
    blockNumber: sweep.blockNumber ?? null,
    createdAt: sweep.createdAt,
  };
}
