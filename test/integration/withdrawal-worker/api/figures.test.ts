/** What the withdrawal API and its metrics tell of wallets and of how payments fare. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import request from "supertest";
import { toChecksumAddress } from "../../../../chain/address.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { freezeSigning, releaseSigning } from "../../../../ledger/requests/signing-freeze.js";
import { type HttpServer } from "../../../../runtime/http/http-server.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import type { Sql } from "../../../../runtime/sql/sql.js";
import { SqlError } from "../../../../runtime/sql/sql-errors.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import {
  registerWorkerFigures,
  registerWorkerHealth,
} from "../../../../withdrawal-worker/worker-metrics.js";
import { House, TOKEN, WALLET } from "../../../helpers/exchange/house.js";

import { bearer, bodyOf, createApi } from "./api-stage.js";

let house: House;
let server: HttpServer;

beforeAll(async () => {
  house = await House.withAlice(1_000n * TOKEN);
  server = createApi(house);
  await server.start();
});

afterAll(async () => {
  await server.stop();
  await house.close();
});

const base = () => `http://127.0.0.1:${server.port}`;

const post = (body: unknown) =>
  request(base())
    .post("/v1/withdrawals")
    .set(bearer)
    .set("Idempotency-Key", randomUUID())
    .send(body as object);

const laneStatus = () => ({
  blockedReason: "test",
  isFrozen: true,
  holdsLease: true,
  openSlots: 3,
  stalledMs: 4_000,
});

describe("the wallets", () => {
  it("are listed with what they hold, what is on its way and who works for them", async () => {
    const ask = () => request(base()).get("/v1/wallets").set(bearer);
    const fresh = await ask();
    expect(fresh.status).toBe(200);
    expect(fresh.body.wallets).toEqual([
      {
        address: toChecksumAddress(WALLET),
        label: "wallet-0",
        status: "active",
        since: expect.stringMatching(/Z$/),
        reason: "a wallet of the tests",
        balanceAtoken: null,
        balanceHeight: null,
        reservedAtoken: "0",
        freeAtoken: "0",
        nextNonce: null,
        openSlots: 0,
        oldestSlot: null,
        frozen: false,
        frozenReason: null,
        leaseHolder: null,
        keyHeld: false,
      },
    ]);
    const { body } = await post(bodyOf());
    const context = house.context();
    await new Lane(context, "host:1:worker").runRound(house.signal);
    await freezeSigning(house.database, WALLET, "a drill");
    const [wallet] = (await ask()).body.wallets;
    expect(wallet).toMatchObject({
      balanceAtoken: (1_000n * TOKEN).toString(),
      frozen: true,
      frozenReason: "a drill",
      leaseHolder: "host:1:worker",
    });
    expect(wallet.openSlots).toBeGreaterThan(0);
    expect(wallet.nextNonce).toBe(wallet.openSlots);
    expect(wallet.oldestSlot).toMatchObject({ nonce: 0 });
    expect(BigInt(wallet.freeAtoken) + BigInt(wallet.reservedAtoken)).toBe(1_000n * TOKEN);
    const paying = await request(base()).get(`/v1/withdrawals/${body.id}`).set(bearer);
    expect(paying.body.wallet).toBe(toChecksumAddress(WALLET));
    await releaseSigning(house.database, WALLET);
  });
});

describe("the metrics", () => {
  it("tell withdrawals by status, age, flight and freeze, and survive a lost database", async () => {
    const metrics = createMetrics({ processMetrics: false });
    let isDown = false;
    const database: Sql = {
      query: (text, values) =>
        isDown
          ? Promise.reject(new SqlError("DATABASE_UNAVAILABLE", "gone", { retriable: true }))
          : house.database.query(text, values),
    };
    registerWorkerFigures(metrics, database);
    const walletStatus = "active" as const;
    const laneStatuses = () => [{ wallet: WALLET, hasKey: true, walletStatus, ...laneStatus() }];
    registerWorkerHealth(metrics, { laneStatuses, isQueueOpen: () => false });
    const { body } = await post(bodyOf());
    const page = await metrics.page();
    expect(page).toMatch(/causeway_withdrawals\{status="accepted"\} [1-9]/);
    expect(page).toMatch(/causeway_withdrawals_oldest_open_age_seconds [0-9]/);
    expect(page).toContain(`causeway_withdrawals_in_flight{wallet="${WALLET}"} 3`);
    expect(page).toContain(`causeway_withdrawal_lane_stalled_seconds{wallet="${WALLET}"} 4`);
    expect(page).toContain(`causeway_signing_frozen{wallet="${WALLET}"} 1`);
    expect(page).toContain("causeway_withdrawal_queue_open 0");
    expect(page).toContain('causeway_withdrawals_ended_total{status="cancelled"} 0');
    await cancelWithdrawal(house.database, body.id, "for the metrics");
    // Of the page that is asked for, not of the one before; two at once count once.
    for (const shown of await Promise.all([metrics.page(), metrics.page()])) {
      expect(shown).toContain('causeway_withdrawals_ended_total{status="cancelled"} 1');
    }
    isDown = true;
    const later = await metrics.page();
    expect(later).not.toContain('status="accepted"');
    expect(later).not.toMatch(/^causeway_withdrawals_oldest_open_age_seconds /m);
    expect(later).toContain(`causeway_signing_frozen{wallet="${WALLET}"} 1`);
  });

  it("tell their business to nobody without the key", async () => {
    const keyedMetrics = createMetrics({ processMetrics: false });
    registerWorkerFigures(keyedMetrics, house.database);
    const keyed = createApi(house, { keyedMetrics });
    await keyed.start();
    const ask = (headers: Record<string, string>) =>
      request(`http://127.0.0.1:${keyed.port}`).get("/metrics").set(headers);
    for (const [name, value] of [
      ["X-None", "none"],
      ["Authorization", "Bearer wrong"],
    ] as const) {
      const page = await ask({ [name]: value });
      expect([page.status, page.text.includes("causeway_withdrawals")]).toEqual([200, false]);
    }
    expect((await ask(bearer)).text).toContain("causeway_withdrawals_ended_total");
    await keyed.stop();
  });

  it("read open withdrawals by their index and events by their number, whatever the table holds", async () => {
    const explain = await house.ledger.owner.transaction(async (tx) => {
      await tx.query("SET LOCAL enable_seqscan = off");
      return tx.query<Record<string, string>>(
        `EXPLAIN SELECT status, created_at FROM withdrawal
          WHERE phase IN ('waiting', 'open') ORDER BY position LIMIT 100000`,
      );
    });
    const text = explain.map((row) => Object.values(row)[0]).join("\n");
    expect(text).toContain("withdrawal_open");
  });
});
