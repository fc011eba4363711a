/**
 * Nonces that a failover has lost, after a person let their wallet go on: several workers were shown them, and
 * each would freeze it for them anew.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { NodeFault } from "../../../rpc-client/errors.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import type { Lane } from "../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import { ShownNonces } from "../../../withdrawal-worker/lane/shown-nonces.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { createPatientClient, createPatientNode } from "../../helpers/exchange/patient-node.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../recovery/desk.js";

let desk: Desk;
/** What the first worker was shown. */
let shown: ShownNonces;
/** No node takes what is signed. */
let isAway: boolean;
let first: Lane;
let second: Lane;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  isAway = false;
  shown = new ShownNonces();
  first = worker(shown);
  second = worker();
});
afterEach(() => desk.close());

/** Goes on over whichever database the desk has, as a process does behind a failover. */
const database: SqlDatabase = {
  query: (text, parameters) => desk.workerDatabase.query(text, parameters),
  transaction: (work) => desk.workerDatabase.transaction(work),
  snapshot: (work, options) => desk.workerDatabase.snapshot(work, options),
  close: () => Promise.resolve(),
  url: "",
};

/** The lane of a worker of its own, which remembers for itself what it was shown. */
function worker(remembered = new ShownNonces()): Lane {
  const { genesisHash, url } = desk.chain;
  const node = createPatientNode(createPatientClient(url), { chainId: FAKE_CHAIN_ID, genesisHash });
  const key = { signer: desk.rulesOf(KEY).signer, hasKey: () => true };
  return desk.makeLane(WALLET, key, {
    ledger: createLaneLedger(database, remembered),
    guard: createLaneGuard({ database, wallet: WALLET, log: silentLog }),
    node: {
      ...node,
      send: async (...asked) => {
        if (!isAway) return node.send(...asked);
        throw new NodeFault("NODE_UNREACHABLE", "nobody listens", { retriable: true });
      },
    },
  });
}

const ask = (key: string) =>
  desk.request({ key, customer: "alice", to: destination(1), amountAtoken: TOKEN });

/** Nonces are given, of which no node hears, and the standby that takes over has none of them. */
async function loseNonces(...shownTo: readonly Lane[]): Promise<void> {
  const standby = await desk.backup();
  isAway = true;
  for (const [index, lane] of shownTo.entries()) {
    await ask(`lost ${index}`);
    await lane.runRound(desk.signal).catch(() => undefined);
  }
  await desk.useDatabase(standby);
  isAway = false;
}

const isFrozen = async () => (await readFreeze(desk.database, WALLET)).frozen;

async function release(): Promise<void> {
  expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
  expect(await isFrozen()).toBe(false);
}

/** Both know of them, and a person has let the wallet go on. */
async function letGo(): Promise<void> {
  await loseNonces(first, second);
  await second.runRound(desk.signal);
  expect((await readFreeze(desk.database, WALLET)).reason).toContain("knows nonces below 2");
  await release();
}

it("does not freeze again for nonces that a person has let go", async () => {
  await letGo();
  const { id } = await ask("again");
  await desk.work(2, [first]);
  expect(await isFrozen()).toBe(false);
  await desk.work(2, [second]);
  expect(await isFrozen()).toBe(false);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
});

it("freezes for the same nonces once they are given and lost anew", async () => {
  await letGo();
  for (const lane of [first, second]) await lane.runRound(desk.signal);
  expect(await isFrozen()).toBe(false);
  await loseNonces(first, second);
  await first.runRound(desk.signal);
  expect(await isFrozen()).toBe(true);
});

it("freezes for more nonces than a person was told of", async () => {
  await loseNonces(first, second);
  await first.runRound(desk.signal);
  expect((await readFreeze(desk.database, WALLET)).reason).toContain("knows nonces below 1");
  await release();
  await second.runRound(desk.signal);
  expect((await readFreeze(desk.database, WALLET)).reason).toContain("knows nonces below 2");
  await release();
  for (const lane of [first, second]) await lane.runRound(desk.signal);
  expect(await isFrozen()).toBe(false);
});

it("tells of more nonces while it is frozen for some", async () => {
  await loseNonces(first, second);
  for (const lane of [first, second]) await lane.runRound(desk.signal);
  expect((await readFreeze(desk.database, WALLET)).reason).toContain("knows nonces below 2");
  await release();
  for (const lane of [first, second, first]) await lane.runRound(desk.signal);
  expect(await isFrozen()).toBe(false);
});

it("freezes where the freeze itself is lost before anybody has looked", async () => {
  await loseNonces(first);
  const standby = await desk.backup();
  await first.runRound(desk.signal);
  expect(await isFrozen()).toBe(true);
  await desk.useDatabase(standby);
  expect(await isFrozen()).toBe(false);
  await first.runRound(desk.signal);
  expect(await isFrozen()).toBe(true);
});

/** By the first worker's API, before any of its lanes has looked again. */
async function takeBack(key: string) {
  const { id } = await ask(key);
  await cancelWithdrawal(desk.workerDatabase, id, "changed its mind", { shown: shown.all });
  return (await desk.read(id)).status;
}

it("takes back what waits, directly behind the word of a person that lets the wallet go on", async () => {
  await loseNonces(first);
  await first.runRound(desk.signal);
  await release();
  expect(await takeBack("behind the release")).toBe("cancelled");
});

it("takes nothing back behind nonces that were given and lost anew", async () => {
  await letGo();
  await first.runRound(desk.signal);
  await loseNonces(first);
  expect(await takeBack("behind both")).toBe("frozen");
});

it("takes nothing back behind more nonces than a person was told of", async () => {
  await loseNonces(second, first);
  await second.runRound(desk.signal);
  expect((await readFreeze(desk.database, WALLET)).reason).toContain("knows nonces below 1");
  await release();
  expect(await takeBack("behind the release")).toBe("frozen");
});
