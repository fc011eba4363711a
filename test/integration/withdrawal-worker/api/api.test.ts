/** The withdrawal API over HTTP: idempotency for ever, refusals by the contract, pages. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getAddress } from "ethers";
import request from "supertest";
import { parseAddress } from "../../../../chain/address.js";
import { USUAL_ACCOUNTS } from "../../../../chain/chain-accounts.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { acceptWithdrawals } from "../../../../ledger/withdrawals/withdrawals.js";
import { type HttpServer } from "../../../../runtime/http/http-server.js";
import { freshAddress, House, requestOf, TOKEN, WALLET } from "../../../helpers/exchange/house.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { bearer, bodyOf, createApi, GOLD } from "./api-stage.js";

let house: House;
let server: HttpServer;

const API_KEY = "the key of the tests";
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

const post = (body: unknown, key: string = randomUUID()) =>
  request(base())
    .post("/v1/withdrawals")
    .set(bearer)
    .set("Idempotency-Key", key)
    .send(body as object);

const countOf = async (where: string, values: unknown[] = []) => {
  const rows = await house.database.query<{ count: string }>(
    `SELECT count(*)::text AS count FROM ${where}`,
    values,
  );
  return Number(rows[0]?.count);
};

describe("POST /v1/withdrawals", () => {
  it("answers 201 with the whole withdrawal and holds the amount", async () => {
    const before = await house.balance("alice");
    const to = getAddress(freshAddress());
    const answer = await post(bodyOf({ to }));
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^wd_/),
      customerId: "alice",
      asset: "TOKEN",
      to,
      amountUnits: "1000",
      amountAtoken: "1000",
      status: "accepted",
      reason: null,
      expiresAt: null,
      wallet: null,
      nonce: null,
      feeUnits: "0",
      approvalsNeeded: 0,
      approvalsGiven: 0,
      policyHash: null,
      approvals: [],
      hashes: [],
      txHash: null,
      blockNumber: null,
      history: [{ status: "accepted", at: expect.stringMatching(/^\d{4}-.*Z$/) }],
    });
    const after = await house.balance("alice");
    expect(after.held - before.held).toBe(1_000n);
    expect(before.available - after.available).toBe(1_000n);
    const read = await request(base()).get(`/v1/withdrawals/${answer.body.id}`).set(bearer);
    expect(read.body).toEqual(answer.body);
  });

  it("takes units for atoken, and calls both the same request", async () => {
    const [key, to] = [randomUUID(), freshAddress()];
    const units = await post(bodyOf({ to, amountUnits: "7", amountAtoken: undefined }), key);
    expect(units.body).toMatchObject({ amountUnits: "7", amountAtoken: "7" });
    for (const amounts of [{ amountAtoken: "7" }, { amountAtoken: "7", amountUnits: "7" }]) {
      expect((await post(bodyOf({ to, ...amounts }), key)).body).toEqual(units.body);
    }
  });

  it("answers a repeat with the same id, also when the address is spelled otherwise", async () => {
    const key = randomUUID();
    const to = freshAddress();
    const first = await post(bodyOf({ to }), key);
    const repeat = await post(bodyOf({ to: getAddress(to) }), key);
    expect(repeat.status).toBe(201);
    expect(repeat.body).toEqual(first.body);
    expect(await countOf("withdrawal WHERE idempotency_key = $1", [key])).toBe(1);
  });

  it("answers 422 to a used key with another body, whichever field differs", async () => {
    const key = randomUUID();
    await house.fund("bob", TOKEN);
    const body = bodyOf();
    await post(body, key);
    for (const change of [
      { amountAtoken: "1001" },
      { to: freshAddress() },
      { customerId: "bob" },
    ]) {
      const answer = await post({ ...body, ...change }, key);
      expect(answer.status).toBe(422);
      expect(answer.body.code).toBe("IDEMPOTENCY_KEY_REUSED");
    }
  });

  it("binds a key only with a 201", async () => {
    const key = randomUUID();
    await house.fund("carol", 0n);
    const body = bodyOf({ customerId: "carol" });
    expect((await post(body, key)).body.code).toBe("INSUFFICIENT_BALANCE");
    await house.fund("carol", 1_000n);
    expect((await post(body, key)).status).toBe(201);
  });

  it("gives 100 equal requests at once one hold and the same answer", async () => {
    const key = randomUUID();
    const body = bodyOf({ amountAtoken: "7" });
    const before = await house.balance("alice");
    // Two processes race: each has its own queue of requests on the same tables.
    const other = createApi(house);
    await other.start();
    const ports = [server.port, other.port];
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        request(`http://127.0.0.1:${ports[index % 2]}`)
          .post("/v1/withdrawals")
          .set(bearer)
          .set("Idempotency-Key", key)
          .send(body),
      ),
    );
    await other.stop();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
    const after = await house.balance("alice");
    expect(after.held - before.held).toBe(7n);
  });

  it("lets racing requests for one balance take no more than there is", async () => {
    await house.fund("dave", 5_000n);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post(bodyOf({ customerId: "dave" }))),
    );
    const codes = answers.map(({ status }) => status).toSorted((left, right) => left - right);
    expect(codes).toEqual([...Array(5).fill(201), ...Array(15).fill(422)]);
    expect(await house.balance("dave")).toEqual({ available: 0n, held: 5_000n });
  });

  it("refuses with 422 whatever was understood and breaks the rules", async () => {
    const checksummed = getAddress("0x52908400098527886e0f7030069857d2e4169ee7");
    const refused: readonly (readonly [Record<string, unknown>, string])[] = [
      [{ amountAtoken: 1000 }, "INVALID_FIELD"],
      // What a client that writes amounts as numbers sends: no double has it exactly.
      [{ amountAtoken: 250_000_000_000_000_000 }, "INVALID_FIELD"],
      [{ amountAtoken: "0" }, "INVALID_FIELD"],
      [{ amountAtoken: "01" }, "INVALID_FIELD"],
      [{ amountAtoken: "-5" }, "INVALID_FIELD"],
      [{ amountAtoken: "1.5" }, "INVALID_FIELD"],
      [{ amountAtoken: "0x10" }, "INVALID_FIELD"],
      [{ amountAtoken: (2n ** 256n).toString() }, "INVALID_FIELD"],
      [{ amountAtoken: "9".repeat(79) }, "INVALID_FIELD"],
      [{ amountAtoken: null }, "INVALID_FIELD"],
      [{ to: checksummed.replace("0x5290840", "0x5290840").toUpperCase() }, "INVALID_FIELD"],
      [{ to: `0x${checksummed.slice(2).toLowerCase().replace("e", "E")}` }, "INVALID_FIELD"],
      [{ to: checksummed.slice(2) }, "INVALID_FIELD"],
      [{ to: "addr1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq" }, "INVALID_FIELD"],
      [{ to: "" }, "INVALID_FIELD"],
      [{ to: WALLET }, "FORBIDDEN_DESTINATION"],
      [{ to: `0x${"00".repeat(20)}` }, "FORBIDDEN_DESTINATION"],
      [{ to: getAddress("0x000000000000000000000000000000000000dead") }, "FORBIDDEN_DESTINATION"],
      [{ asset: "BTC" }, "UNKNOWN_ASSET"],
      [{ asset: "" }, "UNKNOWN_ASSET"],
      [{ asset: 1 }, "INVALID_FIELD"],
      [{ customerId: "nobody" }, "UNKNOWN_CUSTOMER"],
      [{ customerId: "" }, "INVALID_FIELD"],
      [{ customerId: "a b" }, "INVALID_FIELD"],
      [{ customerId: "a\u0000b" }, "INVALID_FIELD"],
      [{ customerId: "x".repeat(65) }, "INVALID_FIELD"],
      [{ amountAtoken: (2n ** 256n - 1n).toString() }, "INSUFFICIENT_BALANCE"],
      [{ to: GOLD }, "FORBIDDEN_DESTINATION"],
      [{ asset: "GOLD" }, "INVALID_FIELD"],
      [{ asset: "GOLD", amountUnits: "1000" }, "INVALID_FIELD"],
      [{ asset: "GOLD", amountUnits: "5", amountAtoken: undefined }, "INSUFFICIENT_BALANCE"],
      [{ amountUnits: "1001" }, "INVALID_FIELD"],
      [{ amountUnits: "0", amountAtoken: undefined }, "INVALID_FIELD"],
      [{ extra: true }, "INVALID_FIELD"],
      [{ to: undefined }, "INVALID_FIELD"],
    ];
    for (const [change, code] of refused) {
      const answer = await post(bodyOf(change));
      expect({ change, status: answer.status, code: answer.body.code }).toEqual({
        change,
        status: 422,
        code,
      });
      expect(Object.keys(answer.body).toSorted()).toEqual(["code", "details", "message"]);
    }
  });

  it("answers 400 to a field that is written twice: others may have read the first one", async () => {
    const body = JSON.stringify(bodyOf());
    const twice = [
      body.replace("{", '{"amountAtoken":"1",'),
      body.replace("{", `{"to":"${freshAddress()}",`),
      // The same name by another spelling, and a nested one that is overwritten as a whole.
      body.replace("{", '{"\\u0061mountAtoken":"1000",'),
      body.replace("{", '{"asset":{"a":1},'),
    ];
    for (const text of twice) {
      const answer = await request(base())
        .post("/v1/withdrawals")
        .set(bearer)
        .set("Idempotency-Key", randomUUID())
        .set("Content-Type", "application/json")
        .send(text);
      const { code, message } = answer.body;
      expect({ text, status: answer.status, code, message }).toEqual({
        text,
        status: 400,
        code: "UNREADABLE",
        message: "the body has a field twice",
      });
    }
  });

  it("answers 400, 401, 404, 405, 413 and 415 where they belong", async () => {
    const raw = (body: string, type = "application/json") =>
      request(base())
        .post("/v1/withdrawals")
        .set(bearer)
        .set("Idempotency-Key", randomUUID())
        .set("Content-Type", type)
        .send(body);
    expect((await raw('{"customerId":')).status).toBe(400);
    // Nothing is nothing to understand, as on the deposit API.
    const nothing = await raw("");
    expect([nothing.status, nothing.body.code]).toEqual([400, "UNREADABLE"]);
    expect((await raw("[1]")).status).toBe(422);
    expect((await raw("x", "text/plain")).status).toBe(415);
    expect((await raw(JSON.stringify(bodyOf({ note: "x".repeat(5_000) })))).status).toBe(413);
    for (const headers of [{}, { Authorization: `Bearer ${API_KEY}` }]) {
      expect((await request(base()).get("/v1/withdrawals").set(headers)).status).toBe(401);
    }
    const path = (name: string) => request(base()).get(name).set(bearer);
    expect((await path("/v1/withdrawals/unknown")).status).toBe(404);
    expect((await path(`/v1/withdrawals/${"x".repeat(2_000)}`)).status).toBe(404);
    expect((await path("/v1/nothing")).status).toBe(404);
    expect((await request(base()).delete("/v1/withdrawals").set(bearer)).status).toBe(405);
  });
});

describe("a request below the minimum", () => {
  it("is refused, unless it is a repeat of one that was accepted before", async () => {
    const body = bodyOf({ amountAtoken: "9" });
    const key = randomUUID();
    const accepted = await post(body, key);
    const strict = createApi(house, { minimumAtoken: 10n });
    await strict.start();
    const ask = (with_: string) =>
      request(`http://127.0.0.1:${strict.port}`)
        .post("/v1/withdrawals")
        .set(bearer)
        .set("Idempotency-Key", with_)
        .send(body);
    const refused = await ask(randomUUID());
    expect([refused.status, refused.body.code]).toEqual([422, "BELOW_MINIMUM"]);
    const repeat = await ask(key);
    expect([repeat.status, repeat.body.id]).toEqual([201, accepted.body.id]);
    await strict.stop();
  });
});

describe("a destination that became a token's contract", () => {
  it("is refused, unless the request is a repeat of one that was accepted before", async () => {
    const contract = parseAddress(freshAddress());
    const body = bodyOf({ to: contract });
    const key = randomUUID();
    const accepted = await post(body, key);
    expect(accepted.status).toBe(201);
    const later = createApi(house, { tokens: [{ symbol: "LATE", contract }] });
    await later.start();
    const ask = (with_: string) =>
      request(`http://127.0.0.1:${later.port}`)
        .post("/v1/withdrawals")
        .set(bearer)
        .set("Idempotency-Key", with_)
        .send(body);
    const refused = await ask(randomUUID());
    expect([refused.status, refused.body.code]).toEqual([422, "FORBIDDEN_DESTINATION"]);
    const repeat = await ask(key);
    expect([repeat.status, repeat.body.id]).toEqual([201, accepted.body.id]);
    await later.stop();
  });
});

describe("the accounts that the chain's genesis names", () => {
  it("are never paid, the burn address among them, wherever it is", async () => {
    const burnAddress = parseAddress(freshAddress());
    const treasury = parseAddress(freshAddress());
    const chainAccounts = { ...USUAL_ACCOUNTS, burnAddress, treasury };
    const api = createApi(house, { chainAccounts });
    await api.start();
    for (const to of [burnAddress, treasury, USUAL_ACCOUNTS.burnAddress]) {
      const refused = await request(`http://127.0.0.1:${api.port}`)
        .post("/v1/withdrawals")
        .set(bearer)
        .set("Idempotency-Key", randomUUID())
        .send(bodyOf({ to }));
      const { status, body } = refused;
      expect({ to, status, code: body.code }).toEqual({
        to,
        status: 422,
        code: "FORBIDDEN_DESTINATION",
      });
    }
    await api.stop();
  });
});

describe("POST /v1/withdrawals/{id}/cancel", () => {
  const cancel = (id: string, body: object = { reason: "a mistake" }) =>
    request(base()).post(`/v1/withdrawals/${id}/cancel`).set(bearer).send(body);

  it("answers with the withdrawal, as often as it is asked", async () => {
    const { body } = await post(bodyOf());
    const first = await cancel(body.id);
    expect([first.status, first.body.status, first.body.reason]).toEqual([
      200,
      "cancelled",
      "a mistake",
    ]);
    const second = await cancel(body.id, { reason: "another word" });
    const odd = await post(bodyOf({}));
    const answer = await cancel(odd.body.id, { reason: "a\ud83db" });
    expect(answer.body).toMatchObject({ status: "cancelled", reason: "a\ufffdb" });
    const said = await cancel(odd.body.id, { reason: "😀".repeat(500) });
    expect([said.status, said.body.status]).toEqual([200, "cancelled"]);
    expect([second.status, second.body]).toEqual([200, first.body]);
  });

  it("refuses what it cannot do, each with a code of its own", async () => {
    expect((await cancel("wd_unknown")).body.code).toBe("NOT_FOUND");
    const { body } = await post(bodyOf());
    for (const wrong of [
      {},
      { reason: "" },
      { reason: "   " },
      { reason: "x".repeat(501) },
      { reason: "😀".repeat(501) },
    ]) {
      expect((await cancel(body.id, wrong)).status).toBe(422);
    }
    const move = (status: string) =>
      house.ledger.owner.transaction(async (tx) => {
        await tx.query("SET LOCAL session_replication_role = replica");
        await tx.query(`UPDATE withdrawal SET status = $2 WHERE id = $1`, [body.id, status]);
      });
    for (const [status, code] of [
      ["included", "ALREADY_MINED"],
      ["settled", "ALREADY_MINED"],
      ["failed", "ALREADY_ENDED"],
      ["rejected", "ALREADY_ENDED"],
    ] as const) {
      await move(status);
      const answer = await cancel(body.id);
      expect([status, answer.status, answer.body.code]).toEqual([status, 409, code]);
    }
    await move("accepted");
  });
});

describe("expiresAt", () => {
  it("is shown as it is kept; what is no time or has passed is refused", async () => {
    const answer = await post(bodyOf({ expiresAt: "2999-01-01T01:00:00+01:00" }));
    expect([answer.status, answer.body.expiresAt]).toEqual([201, "2999-01-01T00:00:00.000Z"]);
    const passed = await post(bodyOf({ expiresAt: "2001-01-01T00:00:00Z" }));
    expect([passed.status, passed.body.code]).toEqual([422, "DEADLINE_PASSED"]);
    const outside = ["9999-12-31T23:59:59-23:59", "2999-02-30T00:00:00Z", "2999-01-01T24:00:00Z"];
    // No calendar of PostgreSQL has them; what a recovered payment may have paid is stored though late.
    outside.push("0000-06-01T00:00:00Z", "0001-01-01T00:00:00+00:01");
    for (const wrong of ["tomorrow", "2999-01-01", "2999-13-01T00:00:00Z", 5, {}, ...outside]) {
      const { status, body } = await post(bodyOf({ expiresAt: wrong }));
      expect([wrong, status, body.code]).toEqual([wrong, 422, "INVALID_FIELD"]);
    }
    const leapDay = await post(bodyOf({ expiresAt: "2996-02-29t23:59:59.5z" }));
    expect([leapDay.status, leapDay.body.expiresAt]).toEqual([201, "2996-02-29T23:59:59.500Z"]);
  });
});

describe("requests in one commit", () => {
  it("are decided one after the other: one hold per key, and no more than the balance", async () => {
    await house.fund("frank", 10n);
    const customerId = parseCustomerId("frank");
    const wanted = (amountAtoken: bigint, idempotencyKey: string) =>
      requestOf({ customerId, amountUnits: amountAtoken, idempotencyKey });
    const [first, second] = [randomUUID(), randomUUID()];
    const six = wanted(6n, first);
    const asked = [
      six,
      six,
      wanted(6n, second),
      wanted(4n, second),
      wanted(5n, first),
      wanted(1n, randomUUID()),
    ];
    const outcomes = await acceptWithdrawals(house.database, asked, ANY_REQUEST);
    expect(
      outcomes.map((outcome) =>
        outcome.outcome === "refused" ? outcome.refusal : outcome.outcome,
      ),
    ).toEqual([
      "accepted",
      "repeated",
      "INSUFFICIENT_BALANCE",
      "accepted",
      "IDEMPOTENCY_KEY_REUSED",
      "INSUFFICIENT_BALANCE",
    ]);
    expect(await house.balance("frank")).toEqual({ available: 0n, held: 10n });
  });
});

describe("GET /v1/withdrawals", () => {
  it("pages through every row once, oldest first, by customer and status", async () => {
    await house.fund("erin", 1_000n);
    const ids: string[] = [];
    for (let index = 0; index < 7; index++) {
      ids.push((await post(bodyOf({ customerId: "erin", amountAtoken: "1" }))).body.id);
    }
    const seen: string[] = [];
    let after: string | null = "0";
    while (after !== null) {
      const answer: request.Response = await request(base())
        .get(`/v1/withdrawals?customerId=erin&status=accepted&limit=3&after=${after}`)
        .set(bearer);
      expect(answer.status).toBe(200);
      for (const { id } of answer.body.withdrawals) seen.push(id);
      after = answer.body.next;
    }
    expect(seen).toEqual(ids);
    const settled = await request(base())
      .get("/v1/withdrawals?customerId=erin&status=settled")
      .set(bearer);
    expect(settled.body).toEqual({ withdrawals: [], next: null });
  });

  it("answers 422 to filters and limits that mean nothing", async () => {
    for (const query of [
      "limit=0",
      "limit=1001",
      "limit=x",
      "limit=",
      "limit=Infinity",
      "limit=1e2",
      "limit=1&limit=2",
      "unknown=1",
      "status=nonsense",
      "after=-1",
      "after=x",
      "customerId=a%20b",
    ]) {
      const answer = await request(base()).get(`/v1/withdrawals?${query}`).set(bearer);
      expect({ query, status: answer.status }).toEqual({ query, status: 422 });
    }
  });
});
