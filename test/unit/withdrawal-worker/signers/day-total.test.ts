/** What a signer remembers of what it signed within a day, for all workers of a home and over restarts. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { bytesToHex, parseHex } from "../../../../chain/hex.js";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { createKeyHolder } from "../../../../withdrawal-worker/signers/keystore-holder.js";
import type { SigningIntent } from "../../../../withdrawal-worker/signers/signer-port.js";
import { SignerTotals } from "../../../../withdrawal-worker/signers/signer-totals.js";
import { takeLockFile } from "../../../../runtime/files/lock-file.js";
import {
  freshFile,
  PERMISSIVE,
  type RuleFiles,
  signerOver,
} from "../../../helpers/keys/signing.js";
import { policyOf } from "../../../integration/policy/terms.js";
import { ADDRESS, cancelOn, KEY, LIMITS, paymentOn } from "./intents.js";
import { codes, open, signed } from "./opened-signer.js";

const { signal } = new AbortController();
const HOUR_MS = 3_600_000;

class HandClock {
  ms = 500_000 * HOUR_MS;
  nowMs = () => this.ms;
  monotonicMs = () => this.ms;
}

describe("the total of a day", () => {
  const policy = policyOf({ signerDayMaxUnits: 10n });

  function counted() {
    const clock = new HandClock();
    const file = freshFile("signer-totals");
    const start = () => open({ policy }, { totals: new SignerTotals(file, clock) });
    return { clock, file, start };
  }

  it("bounds payments, not cancelling transfers, and survives a restart", async () => {
    const { start } = counted();
    expect(await signed(start(), paymentOn(1n, 6n), paymentOn(2n, 5n))).toEqual([
      "signed",
      "DAY_TOTAL",
    ]);
    expect(await signed(start(), paymentOn(3n, 5n), cancelOn(4n), paymentOn(5n, 4n))).toEqual([
      "DAY_TOTAL",
      "signed",
      "signed",
    ]);
    expect(start().review([paymentOn(6n, 1n)])[0]?.code).toBe("DAY_TOTAL");
  });

  it("counts the same payment on the same nonce once, and another one on it again", async () => {
    const { start } = counted();
    for (const gasPriceAtoken of [1n, 2n, 3n]) {
      expect(await signed(start(), { ...paymentOn(1n, 6n), gasPriceAtoken })).toEqual(["signed"]);
    }
    const looks = start().review([paymentOn(1n, 6n), paymentOn(1n, 5n)]);
    expect(looks.map((refusal) => refusal?.code)).toEqual([undefined, "DAY_TOTAL"]);
    expect(await signed(start(), paymentOn(1n, 5n))).toEqual(["DAY_TOTAL"]);
    expect(await signed(start(), paymentOn(1n, 4n))).toEqual(["signed"]);
  });

  it("lowered below what is signed already, has that signed again on its nonce, and nothing new", async () => {
    const { clock, file } = counted();
    const files: RuleFiles = {
      policy: policyOf({ signerDayMaxUnits: 30n }),
      killSwitch: SWITCH_UNTOUCHED,
    };
    const totals = new SignerTotals(file, clock);
    const limits = { limits: LIMITS, chainId: 6940n, totals };
    const signer = signerOver(createKeyHolder(KEY), limits, files);
    expect(await signed(signer, paymentOn(1n, 25n))).toEqual(["signed"]);
    files.policy = policyOf({ signerDayMaxUnits: 20n });
    const dearer = { ...paymentOn(1n, 25n), gasPriceAtoken: 2n };
    expect(signer.review([dearer])).toEqual([undefined]);
    expect(await signed(signer, dearer)).toEqual(["signed"]);
    // What is more than a whole day's total would wait for room for ever.
    const refusal = { kind: "refused", code: "ABOVE_MAXIMUM", isLasting: true };
    const fresh = paymentOn(2n, 25n);
    expect(await signer.sign([fresh], { signal })).toMatchObject([refusal]);
    const { nonce: _nonce, ...unslotted } = fresh;
    expect(signer.review([fresh, unslotted])).toMatchObject([refusal, refusal]);
    expect(await signed(signer, paymentOn(3n, 20n))).toEqual(["DAY_TOTAL"]);
  });

  it("has what was signed before as its bytes prove, also behind all that it knows by name", async () => {
    const { clock, file } = counted();
    const totals = new SignerTotals(file, clock);
    const signer = open({ policy }, { totals });
    const payment = paymentOn(1n, 9n);
    const before = async (fields: Partial<SigningIntent> = {}, key = KEY) => {
      const intent = { ...payment, ...fields };
      return bytesToHex(await createKeyHolder(key).signTransaction(intent, { signal }));
    };
    expect(await signed(signer, payment)).toEqual(["signed"]);
    // Of another wallet of the home, more than are known one by one.
    const others = Array.from({ length: 8_192 }, (_, nonce) => {
      return { slot: `other ${nonce}`, asset: "PLAIN", amountUnits: 1n, meaning: "paid" };
    });
    await totals.count(others);
    const dearer = { ...payment, gasPriceAtoken: 2n * payment.gasPriceAtoken };
    const proven = { ...dearer, signedBefore: await before() };
    expect(signer.review([proven, paymentOn(2n, 1n)])).toEqual([undefined, undefined]);
    expect(await signed(signer, proven)).toEqual(["signed"]);
    expect(totals.signedUnits("TOKEN")).toBe(9n);
    const proofs = [
      undefined,
      await before({ nonce: 2n }),
      await before({ chainId: 1n }),
      await before({ to: ADDRESS }),
      await before({ valueAtoken: 8n }),
      await before({ data: new Uint8Array(1) }),
      await before({}, keccak256(KEY)),
      parseHex("0x01"),
    ];
    for (const [index, signedBefore] of proofs.entries()) {
      const asked = { ...dearer, signedBefore };
      const [look] = signer.review([asked]);
      expect([index, look?.code]).toEqual([index, "DAY_TOTAL"]);
      expect([index, ...(await signed(signer, asked))]).toEqual([index, "DAY_TOTAL"]);
    }
    // Nor is it counted where nothing bounds it.
    const unbounded = open({}, { totals });
    expect(await signed(unbounded, proven)).toEqual(["signed"]);
    expect(totals.signedUnits("TOKEN")).toBe(9n);
  });

  it("is one for all workers of a home, whoever signed first and took over since", async () => {
    const { start } = counted();
    // Both have started; the second one stands by.
    const [first, second] = [start(), start()];
    expect(await signed(first, paymentOn(1n, 6n))).toEqual(["signed"]);
    const asked = [paymentOn(1n, 6n), paymentOn(2n, 5n), paymentOn(3n, 3n)];
    expect(await signed(second, ...asked)).toEqual(["signed", "DAY_TOTAL", "signed"]);
    expect(await signed(first, paymentOn(4n, 2n), paymentOn(5n, 1n))).toEqual([
      "DAY_TOTAL",
      "signed",
    ]);
    expect(await signed(start(), paymentOn(6n, 1n))).toEqual(["DAY_TOTAL"]);
  });

  it("keeps what is in memory alone where another worker of the home writes", async () => {
    const { clock, file, start } = counted();
    const files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
    const totals = new SignerTotals(file, clock);
    const limits = { limits: LIMITS, chainId: 6940n, totals };
    const signer = signerOver(createKeyHolder(KEY), limits, files);
    expect(codes(await signer.sign([paymentOn(1n, 4n)], { signal }))).toEqual(["signed"]);
    expect(await signed(start(), paymentOn(2n, 5n))).toEqual(["signed"]);
    files.policy = policy;
    const asked = [paymentOn(1n, 4n), paymentOn(3n, 2n), paymentOn(4n, 1n)];
    expect(codes(await signer.sign(asked, { signal }))).toEqual(["signed", "DAY_TOTAL", "signed"]);
    expect(new SignerTotals(file, clock).signedUnits("TOKEN")).toBe(10n);
  });

  it("forgets nothing of it where an older file is put under the worker that signed", async () => {
    const { file, start } = counted();
    const signer = start();
    expect(await signed(signer, paymentOn(1n, 6n))).toEqual(["signed"]);
    const older = readFileSync(file);
    expect(await signed(signer, paymentOn(2n, 3n))).toEqual(["signed"]);
    writeFileSync(file, older);
    expect(signer.review([paymentOn(3n, 2n)])[0]?.code).toBe("DAY_TOTAL");
    expect(await signed(signer, paymentOn(3n, 2n), paymentOn(2n, 3n), paymentOn(4n, 1n))).toEqual([
      "DAY_TOTAL",
      "signed",
      "signed",
    ]);
    // Who starts now reads what that worker has written again.
    expect(await signed(start(), paymentOn(5n, 1n))).toEqual(["DAY_TOTAL"]);
  });

  it("forgets after a day, never before", async () => {
    const { clock, start } = counted();
    expect(await signed(start(), paymentOn(1n, 10n))).toEqual(["signed"]);
    clock.ms += 24 * HOUR_MS;
    expect(await signed(start(), paymentOn(2n, 1n))).toEqual(["DAY_TOTAL"]);
    clock.ms += HOUR_MS;
    expect(await signed(start(), paymentOn(2n, 1n))).toEqual(["signed"]);
  });

  it("is forgotten for no clock that ran ahead for a while", async () => {
    const { clock, start } = counted();
    expect(await signed(start(), paymentOn(1n, 9n))).toEqual(["signed"]);
    clock.ms += 400 * 24 * HOUR_MS;
    expect(await signed(start(), paymentOn(2n, 1n))).toEqual(["signed"]);
    clock.ms -= 400 * 24 * HOUR_MS;
    expect(await signed(start(), paymentOn(3n, 1n))).toEqual(["DAY_TOTAL"]);
  });

  it("counts what was signed before there was a bound, also over a restart", async () => {
    const { clock, file } = counted();
    const files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
    const totals = new SignerTotals(file, clock);
    const signer = signerOver(
      createKeyHolder(KEY),
      { limits: LIMITS, chainId: 6940n, totals },
      files,
    );
    for (const gasPriceAtoken of [1n, 2n]) {
      const payment = { ...paymentOn(1n, 6n), gasPriceAtoken };
      expect(codes(await signer.sign([payment], { signal }))).toEqual(["signed"]);
    }
    await totals.flush();
    files.policy = policy;
    const ask = [paymentOn(2n, 5n), paymentOn(3n, 4n)];
    expect(codes(await signer.sign(ask, { signal }))).toEqual(["DAY_TOTAL", "signed"]);
    expect(new SignerTotals(file, clock).signedUnits("TOKEN")).toBe(10n);
  });

  it("is not signed beyond what the disk takes, and the worker lives on", async () => {
    const { file, start } = counted();
    const signer = start();
    rmSync(dirname(file), { recursive: true });
    expect(await signed(signer, paymentOn(1n, 1n), cancelOn(2n))).toEqual(["STOPPED", "signed"]);
    expect(signer.trouble()).toContain("cannot be written down");
    mkdirSync(dirname(file));
    expect(await signed(signer, paymentOn(1n, 1n))).toEqual(["signed"]);
  });

  it("is not signed for while another process keeps the lock, and counts nothing then", async () => {
    const { clock, file, start } = counted();
    const signer = start();
    const lock = await takeLockFile(`${file}.lock`);
    const outcomes = await signer.sign([paymentOn(1n, 6n), cancelOn(2n)], { signal });
    expect(codes(outcomes)).toEqual(["STOPPED", "signed"]);
    // It is asked for again: no withdrawal ends by it.
    expect(outcomes[0]).toMatchObject({ isLasting: false });
    expect(signer.trouble()).toContain(`${process.pid} holds the lock`);
    expect(signer.review([paymentOn(1n, 10n)])).toEqual([undefined]);
    const ending = new AbortController();
    const waiting = signer.sign([paymentOn(1n, 6n)], { signal: ending.signal });
    ending.abort(new Error("the worker ends"));
    await expect(waiting).rejects.toThrow("the worker ends");
    await lock.release();
    expect(new SignerTotals(file, clock).signedUnits("TOKEN")).toBe(0n);
    expect(await signed(signer, paymentOn(1n, 6n))).toEqual(["signed"]);
    expect(signer.trouble()).toBeUndefined();
  });

  it("spares nonces by what other workers of the home have signed", async () => {
    const { start } = counted();
    const [first, second] = [start(), start()];
    expect(await signed(first, paymentOn(1n, 6n))).toEqual(["signed"]);
    expect(second.review([paymentOn(2n, 5n)])[0]?.code).toBe("DAY_TOTAL");
  });

  it("waits for no lock where the policy bounds nothing", async () => {
    const { clock, file, start } = counted();
    const lock = await takeLockFile(`${file}.lock`);
    const unbounded = open({}, { totals: new SignerTotals(file, clock) });
    const ended: (readonly string[])[] = [];
    await Promise.all(
      [start(), unbounded].map(async (signer) => {
        ended.push(await signed(signer, paymentOn(1n, 6n)));
      }),
    );
    expect(ended).toEqual([["signed"], ["STOPPED"]]);
    await lock.release();
  });

  it("is one for all wallets that sign at once", async () => {
    const { clock, file } = counted();
    const totals = new SignerTotals(file, clock);
    const signers = [open({ policy }, { totals }), open({ policy }, { totals })];
    const outcomes = await Promise.all(
      signers.flatMap((signer, index) =>
        [0, 1, 2].map((number) => signed(signer, paymentOn(BigInt(10 * index + number), 4n))),
      ),
    );
    expect(outcomes.flat().filter((code) => code === "signed")).toHaveLength(2);
  });

  it("is on disk before a signature leaves, and a damaged file is no reason to start at nothing", async () => {
    const { clock, file, start } = counted();
    await signed(start(), paymentOn(1n, 10n));
    expect(new SignerTotals(file, clock).signedUnits("TOKEN")).toBe(10n);
    writeFileSync(file, "{");
    expect(start).toThrow(expect.objectContaining({ code: "SIGNER_TOTALS_UNREADABLE" }));
  });
});
