/** kill -9 of the real worker process at every durable step: each payment happens exactly once. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { encryptKeystoreJsonSync, Wallet } from "ethers";
import { bytesToHex } from "../../../chain/hex.js";
import { WORKER_FAILPOINTS } from "../../../withdrawal-worker/failpoints.js";
import { endedBy, endOf } from "../../helpers/processes/endings.js";
import { freePort } from "../../helpers/ports.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";
import { freshAddress, House, TOKEN, WALLET, WALLET_KEY } from "../../helpers/exchange/house.js";

const DEADLINE_MS = 30_000;
let house: House;
let home: string;
let miner: NodeJS.Timeout;
let program: string;

beforeAll(async () => {
  house = await House.withAlice(500n * TOKEN);
  home = mkdtempSync(join(tmpdir(), "causeway-worker-"));
  mkdirSync(join(home, "config"));
  const wallet = new Wallet(bytesToHex(WALLET_KEY));
  const keystore = encryptKeystoreJsonSync(
    { address: wallet.address, privateKey: wallet.privateKey },
    "secret",
    { scrypt: { N: 1_024, r: 8, p: 1 } },
  );
  writeFileSync(join(home, "config", "hot-wallet.json"), keystore);
  writeFileSync(join(home, "config", "hot-wallet.passphrase"), "secret\n");
  writeFileSync(join(home, "config", "api.key"), "k3y\n");
  program = join(await compiledFolder(), "withdrawal-worker", "main.js");
  miner = setInterval(() => house.chain.mine(), 100);
});

afterAll(async () => {
  clearInterval(miner);
  await house.close();
  rmSync(home, { recursive: true, force: true });
});

interface WorkerProcess {
  readonly child: ChildProcess;
  readonly port: number;
  /** Signal or code of its end. */
  readonly ended: Promise<string>;
  readonly ready: Promise<void>;
  readonly output: () => string;
}

async function startWorker(failpoint: string | undefined): Promise<WorkerProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, [program, "--home", home], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: house.ledger.owner.url,
      CAUSEWAY_WORKER_API_LISTEN: `127.0.0.1:${port}`,
      CAUSEWAY_WORKER_NODE_JSON_RPC_URL: house.chain.url,
      CAUSEWAY_WORKER_WORKER_LEASE_MS: "500",
      CAUSEWAY_WORKER_WORKER_SCAN_INTERVAL_MS: "50",
      CAUSEWAY_WORKER_WORKER_POLL_INTERVAL_MS: "50",
      CAUSEWAY_WORKER_WORKER_REBROADCAST_INTERVAL_MS: "500",
      CAUSEWAY_WORKER_WORKER_RETRY_DELAY_MS: "100",
      ...(failpoint === undefined ? {} : { CAUSEWAY_FAILPOINT: failpoint }),
    },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
  }
  const ended = new Promise<string>((resolve) => {
    child.on("exit", (code, signal) => resolve(signal ?? String(code)));
  });
  const ready = until(() => output.includes('"ready":true'), {
    what: "the worker to be ready",
    timeoutMs: DEADLINE_MS,
  });
  return { child, port, ended, ready, output: () => output };
}

/** Asks for a withdrawal as an exchange does: the same key again until there is an answer. */
async function requestUntilAnswered(port: number, body: unknown, key: string): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/v1/withdrawals`, {
      method: "POST",
      headers: {
        authorization: "Bearer k3y",
        "content-type": "application/json",
        "idempotency-key": key,
      },
      body: JSON.stringify(body),
    });
    return response.status === 201;
  } catch {
    return false; // The worker died before it could answer.
  }
}

describe("a worker that is killed", () => {
  it("at any durable step pays every withdrawal exactly once after its restart", async () => {
    const reverting = freshAddress();
    house.chain.reverting.add(reverting);
    const payments: { to: string; key: string; body: unknown }[] = [];
    for (const failpoint of Object.values(WORKER_FAILPOINTS)) {
      const isRefusal = failpoint === WORKER_FAILPOINTS.afterRefusalCommit;
      const isCorrection = failpoint === WORKER_FAILPOINTS.afterCorrectionCommit;
      house.chain.minimumPriceAtoken = isCorrection ? 30_000_000n : 1n;
      const worker = await startWorker(failpoint);
      // What the crash before left behind may already run into this failpoint.
      await Promise.race([worker.ready, worker.ended]);
      const to = isRefusal ? reverting : freshAddress();
      const body = { customerId: "alice", asset: "TOKEN", to, amountAtoken: TOKEN.toString() };
      const key = randomUUID();
      payments.push({ to, key, body });
      await requestUntilAnswered(worker.port, body, key);
      expect({ failpoint, ended: await worker.ended, output: worker.output() }).toEqual({
        failpoint,
        ended: "SIGKILL",
        output: expect.any(String),
      });
    }
    house.chain.minimumPriceAtoken = 1n;
    const worker = await startWorker(undefined);
    await worker.ready;
    for (const { body, key } of payments) {
      expect(await requestUntilAnswered(worker.port, body, key)).toBe(true);
    }
    const open = async () => {
      const rows = await house.database.query<{ count: string }>(
        `SELECT count(*)::text AS count FROM withdrawal WHERE status NOT IN ('settled', 'failed')`,
      );
      return rows[0]?.count === "0";
    };
    await until(open, { what: "all withdrawals to end", timeoutMs: DEADLINE_MS });
    const paid = payments.filter(({ to }) => to !== reverting);
    for (const { to } of paid) {
      expect({ to, balance: house.chain.balances.get(to as never) }).toEqual({
        to,
        balance: TOKEN,
      });
    }
    expect(house.chain.nonces.get(WALLET)).toBe(BigInt(paid.length));
    expect(await house.balance("alice")).toEqual({
      available: (500n - BigInt(paid.length)) * TOKEN,
      held: 0n,
    });
    const spent = 1_000n * TOKEN - (house.chain.balances.get(WALLET) ?? 0n);
    expect(500n * TOKEN - (await house.accountAtoken(`asset:wallet:${WALLET}`))).toBe(spent);
    worker.child.kill("SIGTERM");
    expect(await endOf(worker)).toEqual(endedBy("0"));
  });

  it("and one that was stopped for longer than its lease pay nothing twice", async () => {
    const zombie = await startWorker(undefined);
    await zombie.ready;
    const nonceBefore = house.chain.nonces.get(WALLET) ?? 0n;
    zombie.child.kill("SIGSTOP");
    const heir = await startWorker(undefined);
    await heir.ready;
    const requests = Array.from({ length: 20 }, () => ({
      key: randomUUID(),
      body: {
        customerId: "alice",
        asset: "TOKEN",
        to: freshAddress(),
        amountAtoken: "1000",
      },
    }));
    for (const { key, body } of requests.slice(0, 10)) {
      expect(await requestUntilAnswered(heir.port, body, key)).toBe(true);
    }
    zombie.child.kill("SIGCONT");
    for (const { key, body } of requests.slice(10)) {
      expect(await requestUntilAnswered(zombie.port, body, key)).toBe(true);
    }
    const settled = async () => {
      const rows = await house.database.query<{ count: string }>(
        `SELECT count(*)::text AS count FROM withdrawal
          WHERE status = 'settled' AND amount_units = 1000`,
      );
      return rows[0]?.count === "20";
    };
    await until(settled, { what: "all withdrawals to settle", timeoutMs: DEADLINE_MS });
    expect(house.chain.nonces.get(WALLET)).toBe(nonceBefore + 20n);
    for (const worker of [zombie, heir]) {
      worker.child.kill("SIGTERM");
      expect(await endOf(worker)).toEqual(endedBy("0"));
    }
  });
});
