/** A worker whose requests nobody can pay: no wallet is active with a key that somebody holds. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { forgetKeysHeld } from "../../../ledger/wallets/key-mark.js";
import { Lanes } from "../../../withdrawal-worker/lanes.js";
import type { Signer } from "../../../withdrawal-worker/signers/signer-port.js";
import { holdKeys } from "../../helpers/exchange/held-keys.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../recovery/desk.js";

const NOBODY = /no wallet .* waits/;

let desk: Desk;
let lanes: Lanes;
/** Of this worker's home. */
let signers: Map<Address, Signer>;
/** Why this home cannot open what it has no signer of. */
let fault: string | undefined;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  fault = undefined;
  signers = new Map([[WALLET, desk.rulesOf(KEY).signer]]);
  lanes = new Lanes({
    database: desk.workerDatabase,
    keys: {
      signerOf: (wallet) => signers.get(wallet),
      faultOf: (wallet) => (signers.has(wallet) ? undefined : fault),
      refresh: () => undefined,
    },
    createLane: (wallet, key) => desk.makeLane(wallet, key, { scanIntervalMs: 50 }),
    log: silentLog,
    signal: desk.signal,
    onFault: (error) => {
      throw error;
    },
  });
});

afterEach(async () => {
  await lanes.stop();
  await desk.close();
});

const isBlocked = (words: RegExp | undefined) =>
  until(
    async () => {
      lanes.wake();
      const reason = lanes.blockedReason();
      return words === undefined ? reason === undefined : words.test(reason ?? "");
    },
    { timeoutMs: 20_000, what: `the worker says ${words ?? "nothing"}` },
  );

it("says so while its only wallet is draining, and requests are taken all the same", async () => {
  lanes.start();
  await isBlocked(undefined);
  const why = ["--reason", "a drill", "--operator", "ann"];
  expect((await desk.causeway("wallets", "drain", WALLET, ...why)).code).toBe(0);
  await isBlocked(NOBODY);
  const to = destination(1);
  const asked = { key: "k", customer: "alice", to, amountAtoken: TOKEN };
  expect((await desk.request(asked)).status).toBe("accepted");
  expect((await desk.causeway("wallets", "activate", WALLET, ...why)).code).toBe(0);
  await isBlocked(undefined);
});

it("says so of an active wallet whose keystore is gone, unless another worker holds the key", async () => {
  signers.clear();
  await desk.workerDatabase.transaction((tx) => forgetKeysHeld(tx));
  lanes.start();
  await isBlocked(NOBODY);
  await holdKeys(desk.workerDatabase, [WALLET]);
  await isBlocked(undefined);
});

it("names the files that keep it from paying", async () => {
  fault = "hot-wallet.json: the passphrase does not open the keystore";
  signers.clear();
  await desk.workerDatabase.transaction((tx) => forgetKeysHeld(tx));
  lanes.start();
  await isBlocked(NOBODY);
  expect(lanes.blockedReason()).toContain(`wallet ${WALLET}: ${fault}`);
});

it("says nothing of a key that it has and has not told of yet, as at its start", async () => {
  const told = new Set<string | undefined>();
  lanes.start();
  await until(
    async () => {
      lanes.wake();
      told.add(lanes.blockedReason());
      return told.has(undefined);
    },
    { timeoutMs: 20_000, what: "the lane works" },
  );
  expect([...told].filter((reason) => NOBODY.test(reason ?? ""))).toEqual([]);
});
