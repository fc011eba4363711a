/** A standby without the last commits that takes over in the middle of a lane's round. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { systemClock } from "../../../../runtime/process/clock.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import type { Signer } from "../../../../withdrawal-worker/signers/signer-port.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../../recovery/desk.js";
import { LANE } from "../../recovery/desk-settings.js";
import { createPatientClient, createPatientNode } from "../../../helpers/exchange/patient-node.js";

let desk: Desk;
/** Happens once, when a round has looked at chain and wallet. */
let meanwhile: (() => Promise<void>) | undefined;
/** Whoever holds the key says nothing. */
let isSilent = false;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  meanwhile = undefined;
  isSilent = false;
});
afterEach(() => desk.close());

/** A lane that goes on over whichever database the desk has. */
function makeLane() {
  const database: SqlDatabase = {
    query: (text, parameters) => desk.workerDatabase.query(text, parameters),
    transaction: (work) => desk.workerDatabase.transaction(work),
    snapshot: (work, options) => desk.workerDatabase.snapshot(work, options),
    close: () => Promise.resolve(),
    url: "",
  };
  const guard = createLaneGuard({ database, wallet: WALLET, log: silentLog });
  const { chain } = desk;
  const identity = { chainId: FAKE_CHAIN_ID, genesisHash: chain.genesisHash };
  const rules = desk.rulesOf(KEY);
  const { signer } = rules;
  const silentSigner: Signer = {
    address: signer.address,
    review: (payments) => signer.review(payments),
    trouble: () => undefined,
    sign: (intents, options) =>
      isSilent
        ? Promise.resolve(intents.map(() => ({ kind: "unanswered", reason: "nobody is there" })))
        : signer.sign(intents, options),
  };
  const context = {
    ...rules,
    signer: silentSigner,
    hasKey: () => true,
    ledger: createLaneLedger(database),
    guard: {
      async mayGoOn(view: Parameters<typeof guard.mayGoOn>[0]) {
        await meanwhile?.();
        meanwhile = undefined;
        return guard.mayGoOn(view);
      },
    },
    node: createPatientNode(createPatientClient(chain.url), identity),
    chainId: FAKE_CHAIN_ID,
    settings: { ...LANE, leaseMs: 60_000 },
    clock: systemClock,
    log: silentLog,
  };
  return new Lane(context, randomUUID());
}

const request = (key: string, number: number) =>
  desk.request({ key, customer: "alice", to: destination(number), amountAtoken: TOKEN });

it("gives no nonce a second time, and pays nothing again that was on its way", async () => {
  const lane = makeLane();
  await lane.runRound(desk.signal);
  const replica = await desk.backup();
  await request("lost", 1);
  await lane.runRound(desk.signal);
  expect(desk.chain.arrived).toHaveLength(1);

  meanwhile = async () => {
    await desk.useDatabase(replica);
    // Clients: one asks for something else first, one repeats what is lost.
    await request("other", 2);
    await request("lost", 1);
  };
  await desk.work(3, [lane]);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(desk.paidAtoken(destination(2))).toBe(0n);
  expect(lane.status()).toMatchObject({ isFrozen: true });
  expect(lane.status().blockedReason).toContain("nonces");
});

it("goes on behind a recovery, though a nonce was lost that nothing was signed for", async () => {
  const lane = makeLane();
  await lane.runRound(desk.signal);
  const replica = await desk.backup();
  isSilent = true;
  const { id } = await request("lost", 1);
  await lane.runRound(desk.signal);
  expect((await desk.read(id)).status).toBe("slotted");

  await desk.useDatabase(replica);
  await desk.causeway("recover", "--declare", "the standby had not got the last commits");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  isSilent = false;
  const again = await request("lost", 1);
  await desk.work(4, [lane]);
  expect(lane.status()).toMatchObject({ isFrozen: false });
  expect((await desk.read(again.id)).status).toBe("settled");
});
