/** A worker that nobody asks anything sees by itself that its policy changed, broke or was mended. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { encryptKeystoreJsonSync, Wallet } from "ethers";
import { bytesToHex } from "../../../chain/hex.js";
import { markPath } from "../../../ledger/guard/home-mark.js";
import { policyPath } from "../../../ledger/policy/policy-paths.js";
import { policyFileText } from "../../../ledger/policy/policy.js";
import { freePort } from "../../helpers/ports.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { freshFile } from "../../helpers/keys/signing.js";
import { until } from "../../helpers/until.js";
import { freshAddress, House, TOKEN, WALLET_KEY } from "../../helpers/exchange/house.js";
import { policyOf } from "./terms.js";

const DEADLINE_MS = 30_000;
const APPROVED = policyOf({ approvals: [{ aboveUnits: 0n, needed: 1, signed: false }] });

let house: House;
let home: string;
let url: string;
let worker: ChildProcess;

beforeAll(async () => {
  house = await House.withAlice(5n * TOKEN);
  home = dirname(freshFile("x"));
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
  writeFileSync(policyPath(home), policyFileText(APPROVED.policy));
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const program = join(await compiledFolder(), "withdrawal-worker", "main.js");
  worker = spawn(process.execPath, [program, "--home", home], {
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: house.ledger.owner.url,
      CAUSEWAY_WORKER_API_LISTEN: `127.0.0.1:${port}`,
      CAUSEWAY_WORKER_NODE_JSON_RPC_URL: house.chain.url,
    },
  });
  let output = "";
  worker.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString("utf8");
  });
  await until(() => output.includes('"ready":true'), { timeoutMs: DEADLINE_MS, what: "ready" });
  await until(isReady, { timeoutMs: DEADLINE_MS, what: "the first look of its lane" });
});

afterAll(async () => {
  const ended = new Promise((resolve) => worker.once("exit", resolve));
  worker.kill("SIGKILL");
  await ended;
  await house.close();
});

const isReady = async (): Promise<boolean> => (await fetch(`${url}/ready`)).status === 200;

it("says on /ready that the policy cannot be read, and that it can again", async () => {
  writeFileSync(policyPath(home), "{");
  // A lane on a busy machine may be late, and said to be so, before that.
  const isTold = async () => {
    const answer = await fetch(`${url}/ready`);
    return answer.status === 503 && (await answer.text()).includes("the policy cannot be used");
  };
  await until(isTold, { timeoutMs: DEADLINE_MS, what: "/ready 503 with the reason" });
  writeFileSync(policyPath(home), policyFileText(APPROVED.policy));
  await until(isReady, { timeoutMs: DEADLINE_MS, what: "/ready 200" });
});

it("remembers its ledger in its own home", async () => {
  const isThere = () => existsSync(markPath(home));
  await until(isThere, { timeoutMs: DEADLINE_MS, what: "the mark of the ledger" });
});

it("lets what waited for approvals go on when the policy asks for none any more", async () => {
  const answer = await fetch(`${url}/v1/withdrawals`, {
    method: "POST",
    headers: {
      authorization: "Bearer k3y",
      "content-type": "application/json",
      "idempotency-key": "quiet",
    },
    body: JSON.stringify({
      customerId: "alice",
      asset: "TOKEN",
      to: freshAddress(),
      amountAtoken: TOKEN.toString(),
    }),
  });
  expect(await answer.json()).toMatchObject({ status: "pending_approval" });
  writeFileSync(policyPath(home), policyFileText(policyOf({}).policy));
  const status = async () => {
    const [row] = await house.database.query<{ status: string }>("SELECT status FROM withdrawal");
    return row?.status;
  };
  await until(async () => (await status()) !== "pending_approval", {
    timeoutMs: DEADLINE_MS,
    what: "the withdrawal goes on",
  });
});
