/** The Idempotency-Key of a request to withdraw: without a good one nothing is understood. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import request from "supertest";
import type { HttpServer } from "../../../../runtime/http/http-server.js";
import { House, TOKEN } from "../../../helpers/exchange/house.js";
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

const post = (body: unknown, key: string = randomUUID()) =>
  request(base())
    .post("/v1/withdrawals")
    .set(bearer)
    .set("Idempotency-Key", key)
    .send(body as object);

describe("the Idempotency-Key", () => {
  it("is 400 where it is missing or malformed", async () => {
    const without = await request(base()).post("/v1/withdrawals").set(bearer).send(bodyOf());
    expect(without.status).toBe(400);
    expect(without.body.code).toBe("INVALID_IDEMPOTENCY_KEY");
    for (const key of ["", "x".repeat(129), "tab\there", "ümlaut"]) {
      const answer = await post(bodyOf(), key);
      expect({ key, status: answer.status }).toEqual({ key, status: 400 });
    }
    // Twice the same is no other key: whoever adds it on the way must not make a repeat a payment.
    const key = randomUUID();
    const twice = await request(base())
      .post("/v1/withdrawals")
      .set(bearer)
      .set("Idempotency-Key", [key, key] as unknown as string)
      .send(bodyOf());
    expect([twice.status, twice.body.code]).toEqual([400, "INVALID_IDEMPOTENCY_KEY"]);
    expect((await post(bodyOf(), "a, a")).status).toBe(201);
    expect((await post(bodyOf(), "x".repeat(128))).status).toBe(201);
    expect((await post(bodyOf(), `~ !"{}${randomUUID()}`)).status).toBe(201);
  });

  it("is 400 without it or with another, whatever else is wrong", async () => {
    const alike = [
      request(base()).post("/v1/withdrawals?source=app").set(bearer).send(bodyOf()),
      request(base())
        .post("/v1/withdrawals")
        .set(bearer)
        .send(bodyOf({ extra: true })),
      post(bodyOf(), "x".repeat(129)).query({ source: "app" }),
      request(base()).post("/v1/withdrawals").set(bearer).type("text/plain").send("x"),
      request(base())
        .post("/v1/withdrawals")
        .set(bearer)
        .send(bodyOf({ amountAtoken: 250_000_000_000_000_000 })),
      request(base()).post("/v1/withdrawals").set(bearer).type("json").send('{"customerId":'),
    ];
    for (const answer of await Promise.all(alike)) {
      const { code, details } = answer.body;
      expect([answer.status, code]).toEqual([400, "INVALID_IDEMPOTENCY_KEY"]);
      expect(details.errors[0].path).toBe("/headers/idempotency-key");
    }
    const known = await post(bodyOf()).query({ source: "app" });
    expect([known.status, known.body.code]).toEqual([422, "INVALID_FIELD"]);
  });
});
