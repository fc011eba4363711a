/** Work on signatures in real threads: its answers, its death, its end. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { keccak256, Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import type { SignatureCheck } from "../../../chain/cosmos/ante.js";
import { secp256k1 } from "../../../chain/crypto.js";
import { hexToBytes } from "../../../chain/hex.js";
import { decodeTransaction, type SignedTransaction } from "../../../chain/transaction.js";
import { RecoveryThread } from "../../../node/mempool/recovery/recovery-thread.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

const log = createLogger({ component: "test", level: "silent" });

describe("the recovery thread", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "causeway-recovery-"));
  const threads: RecoveryThread[] = [];
  const signed: SignedTransaction[] = [];
  const senders: (Address | undefined)[] = [];
  const checks: SignatureCheck[] = [];
  const isRight: boolean[] = [];
  let compiled: string;
  let workerUrl: URL;

  function open(url: URL): RecoveryThread {
    const thread = new RecoveryThread({ log, workerUrl: url });
    threads.push(thread);
    return thread;
  }

  /** A worker of the test's own, beside the real one. */
  function script(name: string, source: string): URL {
    const file = path.join(folder, `${name}.mjs`);
    writeFileSync(file, source);
    return pathToFileURL(file);
  }

  /** A stand-in that leaves a file when it is asked, so that the test knows who was at work. */
  function mark(name: string): { file: string; source: string } {
    const file = path.join(folder, name);
    const target = JSON.stringify(file);
    return { file, source: `(await import("node:fs")).writeFileSync(${target}, "");` };
  }

  /** All transactions in calls of ten, at once, and checks of Cosmos transactions between them. */
  async function recoverAll(thread: RecoveryThread) {
    const verdicts: Promise<unknown>[] = [];
    const calls = Array.from({ length: signed.length / 10 }, (_, call) => {
      verdicts.push(thread.verify(checks.slice(10 * call, 10 * call + 10)));
      return thread.recover(signed.slice(10 * call, 10 * call + 10));
    });
    expect((await Promise.all(verdicts)).flat()).toEqual(isRight);
    return (await Promise.all(calls)).flat();
  }

  beforeAll(async () => {
    compiled = await compiledFolder();
    workerUrl = pathToFileURL(
      path.join(compiled, "node", "mempool", "recovery", "recovery-worker.js"),
    );
    for (let index = 0; index < 200; index++) {
      const wallet = new Wallet(`0x${String(1 + (index % 7)).repeat(64)}`);
      const fields = { chainId: 6940, nonce: index, gasLimit: 21_000n, to: wallet.address };
      const fees = { type: 2, maxFeePerGas: 9n, maxPriorityFeePerGas: 3n };
      const type = index % 5 === 0 ? fees : { type: 0, gasPrice: 9n };
      const raw = await wallet.signTransaction({ ...fields, ...type });
      const tx = decodeTransaction(hexToBytes(raw));
      const isNobodys = index % 13 === 0;
      // No point of the curve has the x coordinate 5.
      signed.push(isNobodys ? { ...tx, r: 5n } : tx);
      senders.push(isNobodys ? undefined : parseAddress(wallet.address));
      const { signingKey } = wallet;
      const digest = hexToBytes(keccak256(raw));
      const { r, s } = signingKey.sign(digest);
      const signature = Buffer.from(`${r.slice(2)}${s.slice(2)}`, "hex");
      const publicKey = hexToBytes(signingKey.publicKey).subarray(1);
      const isOthers = index % 11 === 0;
      checks.push({ digest: isOthers ? hexToBytes(r) : digest, signature, publicKey });
      isRight.push(!isOthers);
    }
  });
  afterAll(async () => {
    await Promise.all(threads.map((thread) => thread.close()));
    rmSync(folder, { recursive: true });
  });

  it("finds the senders that ethers signed for, and nobody where nobody signed", async () => {
    const { file, source } = mark("asked");
    const real = JSON.stringify(workerUrl.href);
    const thread = open(
      script(
        "watched",
        `import { parentPort } from "node:worker_threads";
        parentPort.on("message", async () => { ${source} });
        await import(${real});`,
      ),
    );
    // Until the thread is up the answers come from the main thread; they are the same.
    await until(
      async () => {
        expect(await recoverAll(thread)).toEqual(senders);
        return existsSync(file);
      },
      { timeoutMs: 60_000, what: "the thread has answered" },
    );
    expect(await recoverAll(thread)).toEqual(senders);
    const one = await thread.recover(signed.slice(1, 2));
    expect(one).toEqual(senders.slice(1, 2));
    expect(await thread.recover([])).toEqual([]);
  });

  it("uses the same back-end in a thread as on the main thread", async () => {
    const crypto = JSON.stringify(pathToFileURL(path.join(compiled, "chain", "crypto.js")).href);
    const url = script(
      "backend",
      `import { parentPort } from "node:worker_threads";
      import { secp256k1 } from ${crypto};
      parentPort.postMessage(secp256k1.backend);`,
    );
    const worker = new Worker(url);
    const backend = await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    await worker.terminate();
    expect(backend).toBe(secp256k1.backend);
  });

  it("loses nothing when it dies at work, and is replaced", async () => {
    const died = mark("died");
    const replaced = mark("replaced");
    const thread = open(
      script(
        "mortal",
        `import { existsSync } from "node:fs";
        import { parentPort } from "node:worker_threads";
        if (existsSync(${JSON.stringify(died.file)})) {
          parentPort.on("message", async () => { ${replaced.source} });
          await import(${JSON.stringify(workerUrl.href)});
        } else {
          parentPort.on("message", async () => { ${died.source} process.exit(1); });
          parentPort.postMessage("ready");
        }`,
      ),
    );
    await until(
      async () => {
        expect(await recoverAll(thread)).toEqual(senders);
        return existsSync(replaced.file);
      },
      { timeoutMs: 60_000, what: "the second thread is at work" },
    );
    expect(existsSync(died.file)).toBe(true);
    expect(await recoverAll(thread)).toEqual(senders);
  });

  it("answers from the main thread when the thread does not even start", async () => {
    const { file, source } = mark("started");
    const url = script("stillborn", `${source} throw new Error("no such machine");`);
    const thread = open(url);
    expect(await recoverAll(thread)).toEqual(senders);
    await until(() => existsSync(file), { timeoutMs: 30_000 });
    expect(await recoverAll(thread)).toEqual(senders);
    await thread.close();
  });

  it("answers from the main thread when no thread can be made", async () => {
    // Refused by the constructor itself, as it is where the system has no more threads.
    const thread = open(new URL("http://nowhere.invalid/"));
    expect(await recoverAll(thread)).toEqual(senders);
    expect(await thread.recover(signed)).toEqual(senders);
    await thread.close();
  });

  it("answers what is under way when it is closed, and what comes later", async () => {
    const { file, source } = mark("silent");
    // It takes calls and never answers.
    const thread = open(
      script(
        "silent-worker",
        `import { parentPort } from "node:worker_threads";
        parentPort.on("message", async () => { ${source} });
        parentPort.postMessage("ready");`,
      ),
    );
    const calls: Promise<unknown>[] = [];
    await until(
      () => {
        calls.push(thread.recover(signed));
        return existsSync(file);
      },
      { timeoutMs: 30_000, what: "the thread has a call" },
    );
    await thread.close();
    for (const answer of await Promise.all(calls)) expect(answer).toEqual(senders);
    expect(await thread.recover(signed)).toEqual(senders);
  });
});
