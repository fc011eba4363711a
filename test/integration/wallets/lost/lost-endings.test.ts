/** What clients were told to have ended unpaid, and a standby that took over has not got. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { HomeMark } from "../../../../ledger/guard/home-mark.js";
import { LedgerGuard } from "../../../../ledger/guard/ledger-guard.js";
import { readLedgerState } from "../../../../ledger/guard/ledger-state.js";
import { openIncident } from "../../../../ledger/incidents.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { AcceptQueue } from "../../../../withdrawal-worker/api/accept-queue.js";
import { createWithdrawalRoutes } from "../../../../withdrawal-worker/api/routes.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import { ShownNonces } from "../../../../withdrawal-worker/lane/shown-nonces.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { createPatientClient, createPatientNode } from "../../../helpers/exchange/patient-node.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../../recovery/desk.js";
import { LANE } from "../../recovery/desk-settings.js";

let desk: Desk;
/** Happens once, behind the next commit of the API's. */
let meanwhile: (() => Promise<void>) | undefined;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  meanwhile = undefined;
});
afterEach(() => desk.close());

/** Goes on over whichever database the desk has, as a process does behind a failover. */
const database: SqlDatabase = {
  query: (text, parameters) => desk.workerDatabase.query(text, parameters),
  async transaction(work) {
    const result = await desk.workerDatabase.transaction(work);
    await meanwhile?.();
    meanwhile = undefined;
    return result;
  },
  snapshot: (work, options) => desk.workerDatabase.snapshot(work, options),
  close: () => Promise.resolve(),
  url: "",
};

/** One worker: its API and the lane of its wallet. */
async function openWorker(home = desk.home, key = KEY) {
  const { chain } = desk;
  const wallet = privateKeyToAddress(key);
  const guard = await LedgerGuard.open({ database, home, reporter: "test" });
  const shown = new ShownNonces();
  const rules = desk.rulesOf(key);
  const routes = createWithdrawalRoutes({
    database,
    accept: new AcceptQueue(database, {
      onAccepted: () => undefined,
      minimumAtoken: 0n,
      policy: rules.policy,
      isStopped: () => false,
      clock: systemClock,
      signal: desk.signal,
    }),
    policy: rules.policy,
    chainId: FAKE_CHAIN_ID,
    tokens: [],
    shownNonces: shown.all,
    guard,
    onCancelled: () => undefined,
  });
  const context = {
    ...rules,
    hasKey: () => true,
    ledger: createLaneLedger(database, shown, guard),
    guard: createLaneGuard({ database, wallet, log: silentLog }),
    node: createPatientNode(createPatientClient(chain.url), {
      chainId: FAKE_CHAIN_ID,
      genesisHash: chain.genesisHash,
    }),
    chainId: FAKE_CHAIN_ID,
    settings: { ...LANE, leaseMs: 60_000 },
    clock: systemClock,
    log: silentLog,
  };
  const lane = new Lane(context, randomUUID());
  const call = async (method: "get" | "post", path: string, id: WithdrawalId) => {
    const route = routes.find((each) => each.path === path && each.method === method);
    const reply = await route?.handler({
      method,
      path,
      params: { id },
      query: {},
      headers: {},
      body: { reason: "the client changed its mind" },
      rawBody: new Uint8Array(0),
      signal: desk.signal,
    });
    return Object(reply?.body) as { readonly status: string };
  };
  return {
    guard,
    lane,
    cancel: (id: WithdrawalId) => call("post", "/v1/withdrawals/{id}/cancel", id),
    show: (id: WithdrawalId) => call("get", "/v1/withdrawals/{id}", id),
    list: (id: WithdrawalId) => call("get", "/v1/withdrawals", id),
  };
}

const ask = () =>
  desk.request({ key: "w", customer: "alice", to: destination(1), amountAtoken: TOKEN });

it("pays nothing that was told to be taken back, and closes a ledger that has lost it", async () => {
  const worker = await openWorker();
  await worker.lane.runRound(desk.signal);
  const { id } = await ask();
  const standby = await desk.backup();
  expect(await worker.cancel(id)).toMatchObject({ status: "cancelled" });

  await desk.useDatabase(standby);
  await desk.work(3, [worker.lane]).catch(() => undefined);
  expect(desk.paidAtoken(destination(1))).toBe(0n);
  expect(await worker.guard.check()).toContain("was told");
  expect((await openIncident(desk.database))?.kind).toBe("RECOVERY");
  // A person says what is still wanted.
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  expect((await desk.read(id)).status).toBe("frozen");
  await desk.causeway("withdrawals", "cancel", id, "--reason", "its client was told so");
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  await desk.work(2, [worker.lane]);
  expect((await desk.read(id)).status).toBe("cancelled");
  expect(desk.paidAtoken(destination(1))).toBe(0n);
});

it.each(["show", "list"] as const)(
  "pays nothing of which a client was shown (%s) that it had failed",
  async (word) => {
    const worker = await openWorker();
    await worker.lane.runRound(desk.signal);
    desk.chain.reverting.add(destination(1));
    const { id } = await ask();
    const standby = await desk.backup();
    await worker.lane.runRound(desk.signal);
    expect((await desk.read(id)).status).toBe("failed");
    await worker[word](id);

    await desk.useDatabase(standby);
    desk.chain.reverting.clear();
    await desk.work(3, [worker.lane]).catch(() => undefined);
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    expect(await worker.guard.check()).toContain("was told");
  },
);

it("tells nobody that it was taken back where that is lost before the answer", async () => {
  const worker = await openWorker();
  await worker.lane.runRound(desk.signal);
  const { id } = await ask();
  const standby = await desk.backup();
  meanwhile = () => desk.useDatabase(standby);
  await expect(worker.cancel(id)).rejects.toMatchObject({ code: "COMMIT_LOST", retriable: true });
  expect(await worker.guard.check()).toBeUndefined();
  expect(await worker.cancel(id)).toMatchObject({ status: "cancelled" });
});

it("closes nothing behind a recovery, and where nothing was lost", async () => {
  const worker = await openWorker();
  await worker.lane.runRound(desk.signal);
  const { id } = await ask();
  await worker.cancel(id);
  const controller = new AbortController();
  const following = worker.guard.follow({ signal: controller.signal, log: silentLog });
  await desk.causeway("recover", "--declare", "nobody knows");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  expect(await worker.guard.check()).toBeUndefined();
  const again = await desk.request({
    key: "again",
    customer: "alice",
    to: destination(2),
    amountAtoken: TOKEN,
  });
  await desk.work(4, [worker.lane]);
  expect((await desk.read(again.id)).status).toBe("settled");
  expect(await openIncident(desk.database)).toBeUndefined();
  controller.abort();
  await expect(following).rejects.toBeDefined();
});

describe("a worker in a home of its own", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "causeway-worker-home-"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  /** The process lives until its home remembers all that the ledger has by now, and ends. */
  async function remember({ guard }: Awaited<ReturnType<typeof openWorker>>): Promise<void> {
    const { eventSeq } = await readLedgerState(desk.database);
    const controller = new AbortController();
    const following = guard.follow({ signal: controller.signal, log: silentLog });
    const isTold = async () => ((await HomeMark.open(home)).value?.eventSeq ?? -1) >= eventSeq;
    try {
      await until(isTold, { timeoutMs: 5_000, what: "the home remembers its ledger" });
    } finally {
      controller.abort();
      await following.catch(() => undefined);
    }
  }

  /** The older ledger, and a worker that is started before any watcher has looked at it. */
  async function putBack(backup: string, key = KEY) {
    await desk.useDatabase(backup);
    const worker = await openWorker(home, key);
    await worker.guard.check();
    return worker;
  }

  it("pays nothing of an older ledger that a client had taken back", async () => {
    const worker = await openWorker(home);
    const { id } = await ask();
    const backup = await desk.backup();
    await desk.causeway("withdrawals", "cancel", id, "--reason", "the client changed its mind");
    await remember(worker);

    const again = await putBack(backup);
    await desk.work(3, [again.lane]).catch(() => undefined);
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    expect((await openIncident(desk.database))?.kind).toBe("RECOVERY");
  });

  it("pays nothing again that a wallet has paid which the older ledger does not know", async () => {
    const key = keccak256(Buffer.from("second hot wallet of a home of its own"));
    const second = privateKeyToAddress(key);
    const { id } = await ask();
    const backup = await desk.backup();
    desk.pay([second, 50n * TOKEN]);
    desk.writeKeystore("wallets/second.json", second);
    await desk.restart();
    await desk.watch();
    await desk.causeway("wallets", "drain", WALLET, "--reason", "rotation");
    const worker = await openWorker(home, key);
    await desk.work(4, [worker.lane]);
    expect((await desk.read(id)).status).toBe("settled");
    await remember(worker);

    const again = await putBack(backup, key);
    await desk.work(3, [again.lane]).catch(() => undefined);
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect((await openIncident(desk.database))?.kind).toBe("RECOVERY");
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.work(3, [again.lane]);
    expect((await desk.read(id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  });
});
