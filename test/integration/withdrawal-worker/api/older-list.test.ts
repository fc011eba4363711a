/** A worker whose list of tokens is older than the ledger: it takes nothing new, and answers repeats. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import request from "supertest";
import type { Address } from "../../../../chain/address.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { bytesToHex } from "../../../../chain/hex.js";
import {
  customerAccount,
  parseCustomerId,
  walletAccount,
} from "../../../../ledger/journal/accounts.js";
import { postJournal } from "../../../../ledger/journal/journal.js";
import type { HttpServer } from "../../../../runtime/http/http-server.js";
import { WorkerError } from "../../../../withdrawal-worker/errors.js";
import { House, houseForEachTest, TOKEN, WALLET } from "../../../helpers/exchange/house.js";
import { bearer, bodyOf, createApi, GOLD } from "./api-stage.js";

let house: House;
let newer: HttpServer;
let older: HttpServer;
/** Why the older one's policy cannot be read; undefined where it can. */
let fault: WorkerError | undefined;

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  fault = undefined;
  await house.ledger.owner.transaction(async (tx) => {
    await tx.query(
      `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('GOLD', $1, 6, 0)`,
      [GOLD],
    );
    const credit = customerAccount(parseCustomerId("alice"));
    await postJournal(tx, {
      kind: "test.fund",
      idemKey: `fund:${randomUUID()}`,
      effectiveHeight: 0,
      postings: [{ asset: "GOLD", debit: walletAccount(WALLET), credit, amountUnits: 100n }],
    });
  });
  newer = createApi(house);
  const current = async () => {
    if (fault !== undefined) throw fault;
    return house.files.policy;
  };
  older = createApi(house, { tokens: [], policy: { current } });
  await Promise.all([newer.start(), older.start()]);
});

afterEach(() => Promise.all([newer.stop(), older.stop()]));

const ask = (server: HttpServer, body: object, key: string = randomUUID()) =>
  request(`http://127.0.0.1:${server.port}`)
    .post("/v1/withdrawals")
    .set(bearer)
    .set("Idempotency-Key", key)
    .send(body);

/** A payment that only the chain remembered, as a recovery books it. */
async function recover(payment: {
  readonly to: Address;
  readonly amountUnits: bigint;
  readonly contract: Address | null;
}): Promise<void> {
  const { to, amountUnits, contract } = payment;
  const hash = (name: string) => bytesToHex(keccak256(Buffer.from(name)));
  await house.ledger.owner.query(
    `INSERT INTO recovered_payment (tx_hash, wallet, nonce, height, block_hash, destination,
       amount_units, gas_used, gas_price_atoken, epoch, contract)
     VALUES ($1, $2, 0, 1, $3, $4, $5::numeric, 21000, 1, 1, $6)`,
    [hash(to), WALLET, hash("block"), to, amountUnits.toString(), contract],
  );
}

const goldBody = () => bodyOf({ asset: "GOLD", amountUnits: "5", amountAtoken: undefined });

describe("a token that is on no list here", () => {
  it("is answered where the request was accepted elsewhere, and refused where it is new", async () => {
    const [body, key] = [goldBody(), randomUUID()];
    const before = await ask(older, body, key);
    expect([before.status, before.body.code]).toEqual([422, "UNKNOWN_ASSET"]);
    expect(before.body.details).toEqual({ field: "asset" });
    const accepted = await ask(newer, body, key);
    expect([accepted.status, accepted.body.asset]).toEqual([201, "GOLD"]);
    const repeat = await ask(older, body, key);
    expect([repeat.status, repeat.body]).toEqual([201, accepted.body]);
    const other = await ask(older, { ...body, amountUnits: "6" }, key);
    expect([other.status, other.body.code]).toEqual([422, "IDEMPOTENCY_KEY_REUSED"]);
    const fresh = await ask(older, body);
    expect([fresh.status, fresh.body.code]).toEqual([422, "UNKNOWN_ASSET"]);
  });

  it("is answered in the same way while no policy can be read", async () => {
    const [body, key] = [goldBody(), randomUUID()];
    const accepted = await ask(newer, body, key);
    fault = new WorkerError("POLICY_UNREADABLE", "the file is gone");
    const repeat = await ask(older, body, key);
    expect([repeat.status, repeat.body]).toEqual([201, accepted.body]);
    const fresh = await ask(older, body);
    expect([fresh.status, fresh.body.code]).toEqual([503, "UNAVAILABLE"]);
  });

  it("freezes for a person where a payment that the ledger lost may be the request's own", async () => {
    const body = goldBody();
    await recover({ to: body.to, amountUnits: 5n, contract: GOLD });
    const other = await ask(older, { ...body, amountUnits: "6" });
    expect([other.status, other.body.code]).toEqual([422, "UNKNOWN_ASSET"]);
    const answer = await ask(older, body);
    expect([answer.status, answer.body.status]).toEqual([201, "frozen"]);
  });

  it("is refused before the ledger is asked where no ledger can have it", async () => {
    for (const asset of ["", "a b", "ü", "x".repeat(33)]) {
      const answer = await ask(older, { ...goldBody(), asset });
      expect([asset, answer.status, answer.body.code]).toEqual([asset, 422, "UNKNOWN_ASSET"]);
    }
  });
});

describe("the contract of a token that is on no list here", () => {
  it("is never paid, unless the request was accepted before the ledger had the token", async () => {
    const refused = await ask(older, bodyOf({ to: GOLD }));
    expect([refused.status, refused.body.code]).toEqual([422, "FORBIDDEN_DESTINATION"]);
    const [body, key] = [bodyOf({ amountAtoken: TOKEN.toString() }), randomUUID()];
    const accepted = await ask(older, body, key);
    await house.ledger.owner.query(
      `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('LATE', $1, 6, 0)`,
      [body.to],
    );
    const repeat = await ask(older, body, key);
    expect([repeat.status, repeat.body]).toEqual([201, accepted.body]);
    expect((await ask(older, body)).body.code).toBe("FORBIDDEN_DESTINATION");
    await recover({ to: body.to, amountUnits: TOKEN, contract: null });
    expect((await ask(older, body)).body.status).toBe("frozen");
  });
});
