/**
 * The runbook of docs/restore.md on a whole kit: real processes, a real node and a real PostgreSQL,
 * whose database is put back from a backup, and then lost altogether. The judge is the chain: no
 * payment, no address and no event number comes twice.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ExchangeChain, Sender } from "../helpers/exchange/chain.js";
import { callApi, kitOffset, runCauseway, type RunningKit, startKit } from "../helpers/kit.js";
import {
  copyTestDatabase,
  createTestDatabase,
  type TestDatabase,
} from "../helpers/services/postgres.js";
import { until } from "../helpers/until.js";
import { Wallet } from "ethers";

const TOKEN = 10n ** 18n;
const page = fs.readFileSync(path.resolve("docs/restore.md"), "utf8");

const home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-restore-"));
const portOffset = kitOffset(1);
const databases: TestDatabase[] = [];
let kit: RunningKit | undefined;
let url = "";

const running = (): RunningKit => {
  if (kit === undefined) throw new Error("no kit runs");
  return kit;
};

/** Ends the kit and starts it on another database. */
async function startOn(database: TestDatabase, isClosed = false): Promise<void> {
  await kit?.stop();
  databases.push(database);
  url = database.url;
  kit = await startKit({ home, portOffset, env: { DATABASE_URL: url }, isClosed });
}

/** Runs a command of the runbook: the page has to have it, with names for what is put in. */
async function runbook(command: string, values: Readonly<Record<string, string>> = {}) {
  expect(page).toContain(`npm run causeway -- ${command}\n`);
  const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => {
    const word = quoted ?? plain ?? "";
    const name = /^<([a-z]+)>$/.exec(word)?.[1];
    return name === undefined ? word : (values[name] ?? `missing ${name}`);
  });
  return runCauseway(running(), words, { DATABASE_URL: url });
}

/** Runs a command of the runbook that has to succeed; what it said explains a failure. */
async function succeeds(command: string, values: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = await runbook(command, values);
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${stdout}\n${stderr}`);
}

async function post(name: "depositApi" | "withdrawalApi", to: string, body: unknown, key?: string) {
  const headers: Record<string, string> = key === undefined ? {} : { "Idempotency-Key": key };
  return callApi(running(), name, { path: to, body, headers });
}

async function register(customerId: string): Promise<{ address: string; index: number }> {
  const { status, body } = await post("depositApi", "/v1/addresses", { customerId });
  expect([status, body["code"]]).toEqual([201, undefined]);
  return { address: String(body["address"]), index: Number(body["index"]) };
}

async function available(customerId: string): Promise<bigint> {
  const answer = await callApi(running(), "depositApi", {
    path: `/v1/customers/${customerId}/balances`,
  });
  const [balance] = (answer.body["balances"] ?? []) as { availableAtoken: string }[];
  return BigInt(balance?.availableAtoken ?? "0");
}

async function credited(customerId: string, amountAtoken: bigint): Promise<void> {
  await until(async () => (await available(customerId)) === amountAtoken, {
    timeoutMs: 60_000,
    what: `${customerId} has ${amountAtoken}`,
  });
}

const bodyOf = (customerId: string, to: string, amountAtoken: bigint) => ({
  customerId,
  asset: "TOKEN",
  to,
  amountAtoken: amountAtoken.toString(),
});

async function reaches(id: string, status: string): Promise<Record<string, unknown>> {
  let last: Record<string, unknown> = {};
  await until(
    async () => {
      const answer = await callApi(running(), "withdrawalApi", { path: `/v1/withdrawals/${id}` });
      last = answer.body;
      return last["status"] === status;
    },
    { timeoutMs: 60_000, what: `${id} is ${status}` },
  ).catch((error: unknown) => {
    throw new Error(
      `${String(error)}\n${JSON.stringify(last)}\n${running().output().slice(-3_000)}`,
    );
  });
  return last;
}

async function pay(customerId: string, to: string, amountAtoken: bigint, key: string) {
  const body = bodyOf(customerId, to, amountAtoken);
  const accepted = await post("withdrawalApi", "/v1/withdrawals", body, key);
  expect(accepted.status).toBe(201);
  return reaches(String(accepted.body["id"]), "settled");
}

interface Numbered {
  readonly seq: number;
  readonly epoch: number;
}

/** Every event, followed by its pages as an integrator does. */
async function events(): Promise<Numbered[]> {
  const all: Numbered[] = [];
  for (;;) {
    const after = all.at(-1)?.seq ?? 0;
    const { body } = await callApi(running(), "depositApi", {
      path: `/v1/events?limit=7&after=${after}`,
    });
    const rows = body["events"] as Numbered[];
    all.push(...rows.map(({ seq, epoch }) => ({ seq, epoch })));
    if (body["next"] === null) return all;
  }
}

/** No number twice, no gap within an epoch, epochs in order. */
function assertNumbered(rows: readonly Numbered[]): void {
  rows.slice(1).forEach((row, place) => {
    const before = rows[place];
    if (before === undefined) return;
    if (row.epoch === before.epoch) expect(row.seq).toBe(before.seq + 1);
    else expect([row.epoch > before.epoch, row.seq > before.seq]).toEqual([true, true]);
  });
}

async function reconciled(): Promise<void> {
  let said = "";
  await until(
    async () => {
      const { code, stdout } = await runbook("reconcile");
      said = stdout;
      return code === 0;
    },
    { timeoutMs: 60_000, what: "reconcile is clean" },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${said}`);
  });
}

describe("the runbook of a restore", () => {
  const reason = "the client's own records";
  const [first, second, third] = [1, 2, 3].map(() => Wallet.createRandom().address) as [
    string,
    string,
    string,
  ];
  let chain: ExchangeChain;
  let backup: TestDatabase;
  let alice: { address: string; index: number };
  let bob: { address: string; index: number };
  let told: Numbered[];
  const hashes: string[] = [];

  const balanceOf = async (address: string): Promise<bigint> => chain.provider.getBalance(address);

  beforeAll(async () => {
    await startOn(await createTestDatabase());
    chain = new ExchangeChain(running());
    const faucet = new Sender(new Wallet(running().key("faucet.key")), chain);
    const send = async (to: string, valueAtoken: bigint) =>
      chain.mined(await faucet.send([{ to, valueAtoken }]));
    alice = await register("alice");
    await send(alice.address, 10n * TOKEN);
    await credited("alice", 10n * TOKEN);
    hashes.push(String((await pay("alice", first, TOKEN, "a1"))["txHash"]));
    await events();
    await running().stop();
    backup = await copyTestDatabase(url);
    await startOn({ url, drop: async () => undefined });
    bob = await register("bob");
    await send(bob.address, 5n * TOKEN);
    await credited("bob", 5n * TOKEN);
    hashes.push(String((await pay("alice", second, 2n * TOKEN, "a2"))["txHash"]));
    hashes.push(String((await pay("bob", third, 3n * TOKEN, "b1"))["txHash"]));
    told = await events();
    assertNumbered(told);
  });

  afterAll(async () => {
    await kit?.stop();
    for (const { drop } of databases) await drop();
    fs.rmSync(home, { recursive: true, force: true });
  });

  it("holds for an older database that was put back", async () => {
    await startOn(backup, true);
    for (const name of ["depositApi", "withdrawalApi"] as const) {
      await until(async () => (await fetch(`${running().url(name)}/ready`)).status === 503, {
        timeoutMs: 30_000,
        what: `${name} says that it is closed`,
      });
    }
    const repeat = bodyOf("alice", second, 2n * TOKEN);
    const closed = [
      await post("depositApi", "/v1/addresses", { customerId: "mallory" }),
      await post("withdrawalApi", "/v1/withdrawals", repeat, "a2"),
    ];
    for (const { status, body } of closed) {
      expect([status, body["code"]]).toEqual([503, "RECOVERY"]);
      expect(body["message"]).toContain("causeway recover");
    }
    expect((await runbook("withdrawals release")).code).not.toBe(0);
    expect((await runbook("recover")).code).toBe(1);
    await succeeds("recover --apply");
    await reconciled();

    // The client repeats its lost POST: frozen, not paid.
    const again = await post("withdrawalApi", "/v1/withdrawals", repeat, "a2");
    const id = String(again.body["id"]);
    const frozen = await reaches(id, "frozen");
    expect(frozen["reason"]).toContain(hashes[1]);
    expect((await runbook("ledger open")).stdout).toContain(hashes[2]);
    const link = `ledger link-payment <hash> --withdrawal <id> --reason "<reason>"`;
    await succeeds(link, { hash: hashes[1] ?? "", id, reason });
    expect(await reaches(id, "settled")).toMatchObject({ txHash: hashes[1] });

    const assign =
      'ledger assign-address <address> --customer <customer> --with-deposits --reason "<reason>"';
    const whose = { address: bob.address, customer: "bob", reason };
    await succeeds(assign, whose);
    const claim =
      'ledger link-payment <hash> --customer <customer> --idempotency-key <key> --reason "<reason>"';
    const lost = { hash: hashes[2] ?? "", customer: "bob", key: "b1", reason };
    await succeeds(claim, lost);
    expect(await available("bob")).toBe(2n * TOKEN);
    const body = bodyOf("bob", third, 3n * TOKEN);
    const b1 = await post("withdrawalApi", "/v1/withdrawals", body, "b1");
    expect(b1.body).toMatchObject({ status: "settled", txHash: hashes[2] });

    await succeeds("ledger open");
    await reconciled();
    const rows = await events();
    assertNumbered(rows);
    const fresh = rows.filter(({ epoch }) => epoch === 2);
    expect(fresh[0]?.seq).toBe((told.at(-1)?.seq ?? 0) + 1);
    expect((await register("carol")).index).toBe(bob.index + 1);
    const paid = await Promise.all([first, second, third].map(balanceOf));
    expect(paid).toEqual([TOKEN, 2n * TOKEN, 3n * TOKEN]);
  });

  it("holds for a database that was lost", async () => {
    const before = await events();
    await startOn(await createTestDatabase(), true);
    const closed = await post("depositApi", "/v1/addresses", { customerId: "mallory" });
    expect([closed.status, closed.body["code"]]).toEqual([503, "RECOVERY"]);
    await succeeds("recover --apply");
    await reconciled();
    const assign =
      'ledger assign-address <address> --customer <customer> --with-deposits --reason "<reason>"';
    for (const [address, customer] of [
      [alice.address, "alice"],
      [bob.address, "bob"],
    ] as const) {
      await succeeds(assign, { address, customer, reason });
    }
    const claim =
      'ledger link-payment <hash> --customer <customer> --idempotency-key <key> --reason "<reason>"';
    for (const [customer, key, hash = ""] of [
      ["alice", "a1", hashes[0]],
      ["alice", "a2", hashes[1]],
    ] as const) {
      await succeeds(claim, { hash, customer, key, reason });
    }
    const writeOff = 'ledger write-off-payment <hash> --reason "<reason>"';
    await succeeds(writeOff, { hash: hashes[2] ?? "", reason });
    expect(await available("alice")).toBe(7n * TOKEN);
    await reconciled();
    expect((await register("dave")).index).toBe(bob.index + 2);
    // The wallet goes on where the chain is, and pays once.
    const last = Wallet.createRandom().address;
    await pay("alice", last, TOKEN, "a9");
    const paid = await Promise.all([first, second, third, last].map(balanceOf));
    expect(paid).toEqual([TOKEN, 2n * TOKEN, 3n * TOKEN, TOKEN]);
    const rows = await events();
    assertNumbered(rows);
    expect(rows[0]?.seq).toBeGreaterThan(before.at(-1)?.seq ?? 0);
    expect(rows.every(({ epoch }) => epoch === 3)).toBe(true);
    await reconciled();
  });

  it("holds for a chain that came back without its newest blocks", async () => {
    const same = { url, drop: async () => undefined };
    const dave = await register("dave");
    await running().stop();
    const copy = path.join(home, "older");
    const parts = fs
      .readdirSync(path.join(home, "data"))
      .filter((name) => !/^(postgres|sidecar|ledger-mark\.json|children\.json)$/.test(name));
    const copyAll = (from: string, to: string) => {
      for (const part of parts) {
        fs.rmSync(path.join(to, part), { recursive: true, force: true });
        fs.cpSync(path.join(from, part), path.join(to, part), { recursive: true });
      }
    };
    copyAll(path.join(home, "data"), copy);

    // What is booked now, the chain will not know.
    await startOn(same);
    const faucet = new Wallet(running().key("faucet.key"), chain.provider);
    const gift = await faucet.sendTransaction({
      to: dave.address,
      value: TOKEN,
      type: 0,
      gasPrice: 25_000_000n,
    });
    await credited("dave", TOKEN);
    const [vanished, later] = [1, 2].map(() => Wallet.createRandom().address) as [string, string];
    const paid = await pay("alice", vanished, TOKEN, "v1");
    await running().stop();
    copyAll(copy, path.join(home, "data"));
    // It lies in no copy, and has what is lost now.
    fs.rmSync(path.join(home, "data", "sidecar"), { recursive: true });
    await startOn(same, true);

    const waiting = await post(
      "withdrawalApi",
      "/v1/withdrawals",
      bodyOf("alice", later, TOKEN),
      "v2",
    );
    await until(
      async () => {
        const command = ["deposits", "status", "--json"];
        const { stdout } = await runCauseway(running(), command, { DATABASE_URL: url });
        return /HASH_CHANGED|HEIGHT_WENT_BACK|PARENT_MISMATCH/.test(stdout);
      },
      { timeoutMs: 90_000, what: "the watcher halts" },
    );
    const plan = await runbook("recover");
    expect(plan.code).toBe(1);
    expect(plan.stdout).toContain(`missing payment ${String(paid["txHash"])}`);
    expect(plan.stdout).toContain(gift.hash);
    expect(plan.stdout).toContain("delete data/sidecar");
    expect(await Promise.all([vanished, later].map(balanceOf))).toEqual([0n, 0n]);
    await succeeds("recover --apply");
    await until(async () => (await balanceOf(vanished)) === TOKEN, {
      timeoutMs: 60_000,
      what: "the vanished payment is mined again",
    });
    await credited("dave", 0n);
    await until(async () => (await runbook("withdrawals release")).code === 0, {
      timeoutMs: 60_000,
      what: "signing is released",
    });
    await reaches(String(waiting.body["id"]), "settled");
    expect(await Promise.all([vanished, later].map(balanceOf))).toEqual([TOKEN, TOKEN]);
    const rows = await callApi(running(), "depositApi", {
      path: `/v1/deposits?address=${dave.address}`,
    });
    expect(rows.body["deposits"]).toMatchObject([{ status: "reversed", txHash: gift.hash }]);
    await reconciled();
    assertNumbered(await events());
  });
});
