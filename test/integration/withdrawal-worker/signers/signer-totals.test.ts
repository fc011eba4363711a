/** The total of a day where several processes of one home sign at once, and where one of them is killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { compiledFolder } from "../../../helpers/services/services.js";
import { until } from "../../../helpers/until.js";

const LIMIT_UNITS = 10;
let program: string;
let folder: string;
const children = new Set<ChildProcess>();

/**
 * Signs payments of one unit each, one after the other, with a wallet of its own: a letter on standard
 * output for each, "s" for signed and "r" for refused by the day's total.
 */
const source = (compiled: string) => `
  import { writeSync } from "node:fs";
  import { hexToBytes } from "${compiled}/chain/hex.js";
  import { hashPolicy, PERMISSIVE_POLICY, rulesOf } from "${compiled}/ledger/policy/policy.js";
  import { SWITCH_UNTOUCHED } from "${compiled}/ledger/kill-switch/kill-switch-level.js";
  import { systemClock } from "${compiled}/runtime/process/clock.js";
  import { createKeyHolder } from "${compiled}/withdrawal-worker/signers/keystore-holder.js";
  import { PolicySigner } from "${compiled}/withdrawal-worker/signers/policy-signer.js";
  import { SignerTotals } from "${compiled}/withdrawal-worker/signers/signer-totals.js";
  const [file, wallet, count, limit] = process.argv.slice(2);
  const holder = createKeyHolder(hexToBytes("0x" + wallet.padStart(64, "a")));
  const rules = { ...rulesOf(PERMISSIVE_POLICY, "TOKEN"), signerDayMaxUnits: BigInt(limit) };
  const policy = hashPolicy({ ...PERMISSIVE_POLICY, assets: new Map([["TOKEN", rules]]) });
  const signer = new PolicySigner(holder, {
    chainId: 6940n,
    limits: { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 100_000n, feePerPayoutAtoken: 10n ** 17n },
    readPolicy: () => policy,
    readKillSwitch: () => SWITCH_UNTOUCHED,
    totals: new SignerTotals(file, systemClock),
    own: { wallets: [holder.address], tokenContracts: [] },
    contractOf: () => undefined,
  });
  const payee = "0x52908400098527886e0f7030069857d2e4169ee7";
  const { signal } = new AbortController();
  writeSync(1, "+");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  const sign = async (nonce) => (await signer.sign([{
    kind: "payment", chainId: 6940n, nonce, to: payee, valueAtoken: 1n, data: new Uint8Array(0),
    gasLimit: 25_200n, gasPriceAtoken: 25_000_000n, withdrawalId: "wd_" + nonce,
    customerId: "alice", asset: "TOKEN", amountUnits: 1n, destination: payee, approvals: [],
  }], { signal }))[0];
  for (let nonce = 0n; nonce < BigInt(count); nonce += 1n) {
    let outcome = await sign(nonce);
    // On a busy machine others may have the lock for longer than is waited: nothing was counted.
    while (outcome.code === "SIGNER_TOTALS_BUSY") outcome = await sign(nonce);
    const letters = { DAY_TOTAL: "r", signed: "s" };
    writeSync(1, letters[outcome.code ?? outcome.kind] ?? JSON.stringify(outcome));
  }
  process.exit(0);
`;

/** Takes a lock and keeps it. */
const holding = (compiled: string) => `
  import { writeSync } from "node:fs";
  import { takeLockFile } from "${compiled}/runtime/files/lock-file.js";
  await takeLockFile(process.argv[2]);
  writeSync(1, "+");
  setInterval(() => undefined, 1_000);
`;

beforeAll(async () => {
  program = await compiledFolder();
});

afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  folder = mkdtempSync(join(tmpdir(), "causeway-totals-"));
  writeFileSync(join(folder, "sign.mjs"), source(program));
  writeFileSync(join(folder, "hold.mjs"), holding(program));
  return folder;
}

interface Process {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<unknown>;
}

async function start(script: string, ...args: readonly string[]): Promise<Process> {
  const child = spawn(process.execPath, [join(folder, script), ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.add(child);
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString("utf8");
  });
  // Not its exit, behind which what it wrote may still be on the way.
  const ended = once(child, "close");
  await until(() => output.includes("+"), { timeoutMs: 30_000, what: `${script} is ready` });
  return { child, output: () => output, ended };
}

const signedBy = (processes: readonly Process[]) =>
  processes.flatMap(({ output }) => output().split("s").slice(1)).length;

/** What the file counts, whoever wrote it. */
function countedUnits(file: string): number {
  const { sums } = JSON.parse(readFileSync(file, "utf8"));
  return sums
    .flatMap(([, hours]: [string, [number, string][]]) => hours)
    .reduce((sum: number, [, units]: [number, string]) => sum + Number(units), 0);
}

describe("the total of a day over several processes of a home", () => {
  it("is exceeded by no wallets that sign at once", async () => {
    const file = join(newFolder(), "signer-totals");
    const limit = String(LIMIT_UNITS);
    const signers = await Promise.all(
      ["1", "2", "3", "4"].map((wallet) => start("sign.mjs", file, wallet, "12", limit)),
    );
    for (const { child } of signers) child.stdin?.write("go");
    await Promise.all(signers.map(({ ended }) => ended));
    const outputs = signers.map(({ output }) => output());
    expect(outputs.join("")).toMatch(/^[+sr]*$/);
    expect(`signed ${signedBy(signers)}`).toBe(`signed ${LIMIT_UNITS}`);
    expect(countedUnits(file)).toBe(LIMIT_UNITS);
  });

  it("goes on where the process that holds the lock is killed", async () => {
    const file = join(newFolder(), "signer-totals");
    const limit = String(LIMIT_UNITS);
    const signers = await Promise.all(
      ["1", "2", "3"].map((wallet) => start("sign.mjs", file, wallet, "2", limit)),
    );
    const holder = await start("hold.mjs", `${file}.lock`);
    for (const { child } of signers) child.stdin?.write("go");
    // Whoever would sign waits for it.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(signedBy(signers)).toBe(0);
    holder.child.kill("SIGKILL");
    await Promise.all(signers.map(({ ended }) => ended));
    expect(signers.map(({ output }) => output())).toEqual(["+ss", "+ss", "+ss"]);
    expect(countedUnits(file)).toBe(6);
    expect(readdirSync(folder).toSorted()).toEqual(["hold.mjs", "sign.mjs", "signer-totals"]);
  });

  it("counts whatever was signed, wherever processes are killed", async () => {
    const file = join(newFolder(), "signer-totals");
    const wallets = ["1", "2", "3"];
    let next = 3;
    const all: Process[] = [];
    const open = async (wallet: string) => {
      const signer = await start("sign.mjs", file, wallet, "100000", "1000000");
      all.push(signer);
      signer.child.stdin?.write("go");
      return signer;
    };
    const running = await Promise.all(wallets.map(open));
    for (let kill = 0; kill < 12; kill += 1) {
      await new Promise((resolve) => setTimeout(resolve, 40 + 7 * kill));
      const victim = running.shift();
      victim?.child.kill("SIGKILL");
      await victim?.ended;
      next += 1;
      const beforeUnits = signedBy(running);
      // A wallet of its own: of the same one the same payments would be known.
      running.push(await open(String(next)));
      await until(() => signedBy(running) > beforeUnits, { timeoutMs: 30_000, what: "all go on" });
    }
    for (const { child } of running) child.kill("SIGKILL");
    await Promise.all(running.map(({ ended }) => ended));
    const signed = signedBy(all);
    const counted = countedUnits(file);
    expect(all.map(({ output }) => output()).join("")).toMatch(/^[+s]*$/);
    // What was counted and not signed any more: one for each process at most.
    expect(`${signed} of ${counted}: ${counted >= signed && counted <= signed + all.length}`).toBe(
      `${signed} of ${counted}: true`,
    );
  });
});
