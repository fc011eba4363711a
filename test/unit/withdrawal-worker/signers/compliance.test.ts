/**
 * What every signer promises, whoever holds the key: the bytes of the intent, nothing else, and a
 * wrong answer never leaves it.
 */
import { ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { Transaction } from "ethers";
import { bytesToHex } from "../../../../chain/hex.js";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { createCommandSigner } from "../../../../withdrawal-worker/signers/command-signer.js";
import { createKeyHolder } from "../../../../withdrawal-worker/signers/keystore-holder.js";
import type {
  KeyHolder,
  SigningOutcome,
} from "../../../../withdrawal-worker/signers/signer-port.js";
import { createWeb3Signer } from "../../../../withdrawal-worker/signers/web3signer.js";
import { PERMISSIVE, signerOver } from "../../../helpers/keys/signing.js";
import { until } from "../../../helpers/until.js";
import { type Lie, Web3SignerStub } from "../../../helpers/keys/web3signer-stub.js";
import { ADDRESS, cancelOn, KEY, LIMITS, paymentOn, signedByEthers, WALLET } from "./intents.js";

const { signal } = new AbortController();
const PROGRAM = fileURLToPath(new URL("signing-program.mjs", import.meta.url));

let stub: Web3SignerStub;
const holders: KeyHolder[] = [];

beforeAll(async () => {
  stub = await Web3SignerStub.start(WALLET.privateKey, 6940n);
});

afterEach(() => {
  stub.lie = undefined;
});

afterAll(async () => {
  for (const holder of holders) await holder.close();
  await stub.stop();
});

const opened = (holder: KeyHolder) => {
  holders.push(holder);
  return signerOver(holder, { chainId: 6940n, limits: LIMITS });
};
/** Longer than a busy machine takes to answer itself, or to start a program. */
const PATIENCE_MS = 240_000;

const web3 = (timeoutMs = PATIENCE_MS) =>
  opened(createWeb3Signer({ url: stub.url, timeoutMs, address: ADDRESS }));
const program = (mode: string, timeoutMs = PATIENCE_MS) =>
  opened(
    createCommandSigner({
      command: [process.execPath, PROGRAM, WALLET.privateKey, mode],
      timeoutMs,
      address: ADDRESS,
    }),
  );

const SIGNERS = {
  keystore: () => opened(createKeyHolder(KEY)),
  web3signer: () => web3(),
  command: () => program("honest"),
  "command with s in the upper half": () => program("upper-half"),
};

describe.each(Object.entries(SIGNERS))("the signer %s", (name, open) => {
  it("says whether the key lies in its own process", () => {
    expect(open().holdsKey).toBe(name === "keystore");
  });

  it("signs the bytes that ethers signs, in order, payments and transfers of nothing", async () => {
    const signer = open();
    const intents = [paymentOn(7n), paymentOn(8n, 1n), cancelOn(9n)];
    const outcomes = await signer.sign(intents, { signal });
    for (const [index, intent] of intents.entries()) {
      const raw = await signedByEthers(intent);
      expect(outcomes[index]).toEqual({
        kind: "signed",
        raw,
        hash: Transaction.from(raw).hash,
      });
    }
    expect(signer.address).toBe(ADDRESS);
    expect(signer.trouble()).toBeUndefined();
  });

  it("proves its key by a text that it signs, where it lies elsewhere", async () => {
    const signer = open();
    // Of a key in the process nobody asks for a proof.
    expect(await signer.provesKey("is it there?", { signal })).toBe(name !== "keystore");
    expect(signer.trouble()).toBeUndefined();
  });

  it("signs nothing that is not the payment that it is meant for", async () => {
    const signer = open();
    const payment = paymentOn(7n);
    const wrong = [
      { ...payment, to: ADDRESS },
      { ...payment, valueAtoken: payment.valueAtoken + 1n },
      { ...payment, data: Uint8Array.of(1) },
      { ...payment, chainId: 6941n },
      { ...payment, asset: "USDX" },
      { ...cancelOn(7n), valueAtoken: 1n },
      { ...cancelOn(7n), to: payment.to },
    ];
    for (const intent of wrong) {
      const [outcome] = await signer.sign([intent], { signal });
      expect(outcome?.kind).toBe("wrong");
    }
  });

  it("never signs above the cap of price or gas", async () => {
    for (const change of [{ gasPriceAtoken: 1_000_000_001n }, { gasLimit: 100_001n }]) {
      const [outcome] = await open().sign([{ ...paymentOn(7n), ...change }], { signal });
      expect(outcome?.kind).toBe("wrong");
    }
  });
});

describe("a Web3Signer", () => {
  const LIES: readonly (readonly [Lie, string])[] = [
    ["wrong-chain", "chainId"],
    ["high-s", "INVALID_SIGNATURE"],
    ["other-key", "sender"],
    ["other-value", "value"],
    ["other-nonce", "nonce"],
    ["other-recipient", "to"],
    ["more-gas", "gasLimit"],
    ["dearer", "(gasPrice)"],
    ["cheaper", "(gasPrice)"],
    ["access-list", "(type)"],
    ["fee-market", "(type)"],
    ["calldata", "data"],
    ["garbage", "answer"],
    ["not-hex", "answer"],
    ["wrong-id", "answer"],
  ];

  it.each(LIES)("that lies (%s) is believed nothing", async (lie, named) => {
    const signer = web3();
    stub.lie = lie;
    const outcomes = await signer.sign([paymentOn(7n), paymentOn(8n)], { signal });
    expect(outcomes.map(({ kind }) => kind)).toEqual(["wrong", "wrong"]);
    expect(outcomes[0]).toMatchObject({ reason: expect.stringContaining(named) });
    expect(signer.trouble()).toContain(named);
  });

  it.each(["too-many-requests", "refusal"] as const)(
    "that does not sign (%s) is asked again, and then signs the same nonce",
    async (lie) => {
      const signer = web3();
      stub.lie = lie;
      const [outcome] = await signer.sign([paymentOn(7n)], { signal });
      expect(outcome?.kind).toBe("unanswered");
      expect(signer.trouble()).toContain("the signer did not sign");
      stub.lie = undefined;
      const [after] = await signer.sign([paymentOn(7n)], { signal });
      expect(after).toMatchObject({ raw: await signedByEthers(paymentOn(7n)) });
      expect(signer.trouble()).toBeUndefined();
    },
  );

  it("that falls silent after signing costs a repeat, not a nonce", async () => {
    const signer = web3(100);
    const before = stub.signed;
    stub.lie = "silent-after-signing";
    // In a tenth of a second a busy machine may not even have asked.
    while (stub.signed === before) {
      const [outcome] = await signer.sign([paymentOn(7n)], { signal });
      expect(outcome?.kind).toBe("unanswered");
    }
    stub.lie = undefined;
    const repeats: SigningOutcome[] = [];
    const isSigned = async () => {
      repeats.push(...(await signer.sign([paymentOn(7n)], { signal })));
      return repeats.at(-1)?.kind !== "unanswered";
    };
    await until(isSigned, { timeoutMs: 60_000, what: "an answer in a tenth of a second" });
    expect(repeats.at(-1)).toMatchObject({ raw: await signedByEthers(paymentOn(7n)) });
  });

  it.each(["garbage", "not-hex", "wrong-id", "other-key", "too-many-requests", "refusal"] as const)(
    "proves nothing by what is no signature of the text (%s)",
    async (lie) => {
      const signer = web3();
      stub.lie = lie;
      expect(await signer.provesKey("is it there?", { signal })).toBe(false);
      expect(signer.trouble()).toBeUndefined();
      stub.lie = undefined;
      expect(await signer.provesKey("is it there?", { signal })).toBe(true);
    },
  );

  it("is asked for no text while the home's switch stops signing", async () => {
    const holder = createWeb3Signer({ url: stub.url, timeoutMs: PATIENCE_MS, address: ADDRESS });
    holders.push(holder);
    const killSwitch = { ...SWITCH_UNTOUCHED, level: "stop-sign" as const };
    const rules = { chainId: 6940n, limits: LIMITS };
    const signer = signerOver(holder, rules, { policy: PERMISSIVE, killSwitch });
    const before = stub.methods.length;
    expect(await signer.provesKey("is it there?", { signal })).toBe(false);
    expect(stub.methods).toHaveLength(before);
  });

  it("is asked to sign, and never to send", () => {
    expect(new Set(stub.methods)).toEqual(new Set(["eth_signTransaction", "eth_sign"]));
  });
});

describe("a signer's program", () => {
  it.each(["garbage", "other-digest"])("that lies (%s) is believed nothing", async (mode) => {
    const [outcome] = await program(mode).sign([paymentOn(7n)], { signal });
    expect(outcome?.kind).toBe("wrong");
  });

  it.each(["dies", "refuses"])("that does not sign (%s) is asked again", async (mode) => {
    const signer = program(mode);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const [outcome] = await signer.sign([paymentOn(7n)], { signal });
      expect(outcome?.kind).toBe("unanswered");
    }
  });

  it("that says nothing is ended, and the next one starts anew", async () => {
    const [outcome] = await program("silent", 100).sign([paymentOn(7n)], { signal });
    expect(outcome).toMatchObject({
      kind: "unanswered",
      reason: expect.stringContaining("100 ms"),
    });
  });

  it.each(["garbage", "other-digest", "dies", "refuses"])(
    "proves nothing by what is no signature of the text (%s)",
    async (mode) => {
      const signer = program(mode);
      for (let attempt = 0; attempt < 2; attempt += 1) {
        expect(await signer.provesKey("is it there?", { signal })).toBe(false);
      }
      expect(signer.trouble()).toBeUndefined();
    },
  );

  it("whose answer comes after the round that asked for it is not taken for a lie", async () => {
    const command = [process.execPath, PROGRAM, WALLET.privateKey, "slow"];
    const holder = createCommandSigner({
      command,
      timeoutMs: PATIENCE_MS,
      address: ADDRESS,
    });
    holders.push(holder);
    const round = new AbortController();
    const asked = holder.signTransaction(paymentOn(7n), { signal: round.signal });
    round.abort(new Error("the lease went to another worker"));
    await expect(asked).rejects.toThrow("the lease went to another worker");
    const raw = await holder.signTransaction(paymentOn(8n), { signal });
    expect(bytesToHex(raw)).toBe(await signedByEthers(paymentOn(8n)));
  });

  it("that says nothing is waited for no longer when it has left a process of its own behind", async () => {
    const folder = await mkdtemp(join(tmpdir(), "signer-"));
    const pidFile = join(folder, "pid");
    const script = 'sleep 3600 & echo $! > "$0"; wait';
    const command = ["sh", "-c", script, pidFile];
    const isLeft = () => existsSync(pidFile) && readFileSync(pidFile, "utf8").endsWith("\n");
    // A busy machine may take longer to come to the process that is left behind.
    for (let timeoutMs = 1_000; !isLeft(); timeoutMs *= 2) {
      const signer = opened(createCommandSigner({ command, timeoutMs, address: ADDRESS }));
      const [outcome] = await signer.sign([paymentOn(7n)], { signal });
      expect(outcome?.kind).toBe("unanswered");
    }
    process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
    await rm(folder, { recursive: true });
  });

  it("that is not there is no reason to end", async () => {
    const command = ["/nowhere/signer"];
    const signer = opened(
      createCommandSigner({ command, timeoutMs: PATIENCE_MS, address: ADDRESS }),
    );
    const [outcome] = await signer.sign([paymentOn(7n)], { signal });
    expect(outcome).toMatchObject({
      kind: "unanswered",
      reason: expect.stringContaining("ENOENT"),
    });
  });

  it("that cannot be started for want of descriptors is asked again once there are some", async () => {
    const spawn: unknown = Reflect.get(ChildProcess.prototype, "spawn");
    // As Node has it: a process without pipes, and its fault a moment later.
    Reflect.set(ChildProcess.prototype, "spawn", function fail(this: ChildProcess): number {
      process.nextTick(() => this.emit("error", new Error("spawn EMFILE")));
      return -24;
    });
    const signer = program("honest");
    try {
      const [outcome] = await signer.sign([paymentOn(7n)], { signal });
      expect(outcome?.kind).toBe("unanswered");
    } finally {
      Reflect.set(ChildProcess.prototype, "spawn", spawn);
    }
    const [outcome] = await signer.sign([paymentOn(7n)], { signal });
    expect(outcome?.kind).toBe("signed");
  });
});
