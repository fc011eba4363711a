/** Signed approvals and a ledger that asks for what they approved again: each lets one nonce be used, for ever. */
import { readFileSync, writeFileSync } from "node:fs";
import { beforeEach, expect, it } from "@jest/globals";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { toWithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { takeLockFile } from "../../../../runtime/files/lock-file.js";
import { createKeyHolder } from "../../../../withdrawal-worker/signers/keystore-holder.js";
import type { SigningIntent } from "../../../../withdrawal-worker/signers/signer-port.js";
import { SignerTotals } from "../../../../withdrawal-worker/signers/signer-totals.js";
import {
  freshFile,
  PERMISSIVE,
  type RuleFiles,
  signerOver,
} from "../../../helpers/keys/signing.js";
import { APPROVERS, policyOf, signatureOf } from "../../../integration/policy/terms.js";
import { cancelOn, KEY, LIMITS, paymentOn } from "./intents.js";

const { signal } = new AbortController();
const approvers = APPROVERS.map(({ name, publicKey }) => ({ name, publicKey }));
const policy = policyOf(
  { approvals: [{ aboveUnits: 0n, needed: 1, signed: true }] },
  { approvers },
);

let file: string;
let files: RuleFiles;

beforeEach(() => {
  file = freshFile("signer-totals");
  files = { policy, killSwitch: SWITCH_UNTOUCHED };
});

/** A worker of the home. */
function start() {
  const totals = new SignerTotals(file, systemClock);
  const signer = signerOver(
    createKeyHolder(KEY),
    { limits: LIMITS, chainId: 6940n, totals },
    files,
  );
  return {
    totals,
    /** What it says before a nonce is taken. */
    reviewFrom(fromNonce: bigint, { nonce: _nonce, ...payment }: SigningIntent) {
      return signer.review([{ ...payment, fromNonce }])[0]?.code;
    },
    async sign(...intents: readonly SigningIntent[]): Promise<readonly string[]> {
      const outcomes = await signer.sign(intents, { signal });
      return outcomes.map((outcome) => (outcome.kind === "refused" ? outcome.code : outcome.kind));
    },
  };
}

/** The payment of a withdrawal that a person has signed for, on any nonce. */
function approved(nonce: bigint, name: string): SigningIntent {
  const payment = { ...paymentOn(nonce), withdrawalId: name };
  const asked = { ...payment, id: toWithdrawalId(name) };
  return { ...payment, approvals: [signatureOf(0, asked, policy)] };
}

it("pays it on no second nonce, whoever signed first, and makes the first one dearer", async () => {
  const first = start();
  const second = start();
  expect(await first.sign(approved(3n, "wd_1"))).toEqual(["signed"]);
  const dearer = { ...approved(3n, "wd_1"), gasPriceAtoken: 30_000_000n };
  expect(await second.sign(dearer)).toEqual(["signed"]);
  for (const worker of [first, second, start()]) {
    expect(await worker.sign(approved(4n, "wd_1"))).toEqual(["APPROVALS_USED"]);
    expect(await worker.sign(approved(3n, "wd_1"))).toEqual(["signed"]);
  }
  // What is refused so ends: its nonce goes to a transfer of nothing.
  expect(await first.sign({ ...cancelOn(4n), withdrawalId: "wd_1" })).toEqual(["signed"]);
});

it("pays it once of several nonces that are asked for together", async () => {
  const worker = start();
  const asked = [approved(1n, "wd_1"), approved(2n, "wd_1"), approved(3n, "wd_2")];
  expect(await worker.sign(...asked)).toEqual(["signed", "APPROVALS_USED", "signed"]);
  expect(await start().sign(...asked)).toEqual(["signed", "APPROVALS_USED", "signed"]);
});

it("knows what it was used for where an older file is put under the worker that signed", async () => {
  const worker = start();
  expect(await worker.sign(approved(1n, "wd_1"))).toEqual(["signed"]);
  const older = readFileSync(file);
  expect(await worker.sign(approved(2n, "wd_2"))).toEqual(["signed"]);
  writeFileSync(file, older);
  expect(await worker.sign(approved(3n, "wd_2"), approved(4n, "wd_3"))).toEqual([
    "APPROVALS_USED",
    "signed",
  ]);
  expect(await start().sign(approved(3n, "wd_2"))).toEqual(["APPROVALS_USED"]);
});

it("knows what it was used for though the payment was signed before without one", async () => {
  const worker = start();
  files.policy = PERMISSIVE;
  expect(await worker.sign(approved(1n, "wd_1"))).toEqual(["signed"]);
  files.policy = policy;
  expect(await worker.sign(approved(1n, "wd_1"))).toEqual(["signed"]);
  expect(await worker.sign(approved(2n, "wd_1"))).toEqual(["APPROVALS_USED"]);
});

it("signs nothing that it cannot write down, and the rest all the same", async () => {
  const worker = start();
  const lock = await takeLockFile(`${file}.lock`);
  expect(await worker.sign(approved(1n, "wd_1"), cancelOn(2n))).toEqual(["STOPPED", "signed"]);
  await lock.release();
  expect(await worker.sign(approved(1n, "wd_1"))).toEqual(["signed"]);
});

it("says so before a nonce is taken, as far as it cannot be the very same one", async () => {
  const [worker, other] = [start(), start()];
  const asked = approved(3n, "wd_1");
  expect(other.reviewFrom(3n, asked)).toBeUndefined();
  expect(await worker.sign(asked)).toEqual(["signed"]);
  // A ledger that was put back gives it its nonce again.
  expect([3n, 0n].map((nonce) => other.reviewFrom(nonce, asked))).toEqual([undefined, undefined]);
  expect(other.reviewFrom(4n, asked)).toBe("APPROVALS_USED");
  expect(other.reviewFrom(4n, approved(4n, "wd_2"))).toBeUndefined();
  files.policy = PERMISSIVE;
  expect(other.reviewFrom(4n, asked)).toBeUndefined();
});
