/**
 * Contracts as their authors publish them, deployed by unchanged tools: hardhat sends the same
 * transactions to the kit and to its own chain, and every receipt and code is equal; viem deploys
 * the largest contracts that Ethereum takes (EIP-170, EIP-3860).
 */
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createPublicClient, createWalletClient, defineChain, type Hex, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { kitOffset, type RunningKit, startKit } from "../helpers/kit.js";
import { PATIENCE_MS } from "../helpers/until.js";

const run = promisify(execFile);
const MODULES = path.join(process.cwd(), "node_modules");
const SCRIPT = path.join(process.cwd(), "test", "helpers", "contracts", "deploy-published.cjs");

/** Most bytes of a contract, and of the code that creates one. */
const MAX_CODE_BYTES = 24_576;
const MAX_INITCODE_BYTES = 49_152;

/** What a step left, as far as this test looks into it. */
interface Shown {
  readonly status?: string;
}

interface Outcome {
  readonly results: Readonly<Record<string, Shown>>;
  /** Seconds of the blocks, in the order of the transactions. */
  readonly times: readonly number[];
}

/** Creation code that leaves a contract of so many zero bytes. */
function contractOfSize(bytes: number, initcodeBytes = 0): Hex {
  const head = `61${bytes.toString(16).padStart(4, "0")}5ff3`;
  return `0x${head.padEnd(initcodeBytes * 2, "0")}`;
}

describe("published contracts", () => {
  let kit: RunningKit;

  beforeAll(async () => {
    kit = await startKit({ portOffset: kitOffset(0) });
  });
  afterAll(async () => {
    expect(await kit?.stop()).toBe(0);
    kit?.remove();
  });

  async function deployAll(
    network: "kit" | "hardhat",
    times: readonly number[] = [],
  ): Promise<Outcome> {
    const project = fs.mkdtempSync(path.join(kit.home, "hardhat-"));
    const config = path.join(project, "hardhat.config.cjs");
    const key = kit.key("faucet.key");
    const own = {
      chainId: 6940,
      hardfork: "cancun",
      initialBaseFeePerGas: 0,
      throwOnTransactionFailures: false,
      allowBlocksWithSameTimestamp: true,
      initialDate: "2020-01-01T00:00:00Z",
      accounts: [{ privateKey: key, balance: (10n ** 27n).toString() }],
    };
    const networks = { kit: { url: kit.url("jsonRpc"), accounts: [key] }, hardhat: own };
    const settings = JSON.stringify({ solidity: "0.8.26", networks });
    fs.writeFileSync(path.join(project, "package.json"), "{}");
    fs.writeFileSync(config, `module.exports = ${settings};`);
    const { stdout } = await run(process.execPath, [SCRIPT], {
      cwd: project,
      maxBuffer: 64 * 1024 * 1024,
      env: {
        ...process.env,
        MODULES,
        TIMES: JSON.stringify(times),
        HARDHAT_NETWORK: network,
        HARDHAT_CONFIG: config,
        HARDHAT_DISABLE_TELEMETRY_PROMPT: "true",
      },
    });
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}") as Outcome;
  }

  it("OpenZeppelin's and Uniswap's do on the kit what they do on hardhat's own chain", async () => {
    const { results: onKit, times } = await deployAll("kit");
    const { results: onHardhat } = await deployAll("hardhat", times);
    expect(onKit).toEqual(onHardhat);
    expect(Object.keys(onKit).length).toBeGreaterThan(70);
    const failed = Object.entries(onKit).filter(([, shown]) => shown.status === "0x0");
    expect(failed.map(([name]) => name)).toEqual(["swap too late"]);
    expect(onKit["router"]).toMatchObject({ status: "0x1" });
    expect(onKit["swap over two pairs"]).toMatchObject({ status: "0x1" });
  });

  it("viem deploys a contract of 24,576 bytes; one byte more fails", async () => {
    const rpc = kit.url("jsonRpc");
    const chain = defineChain({
      id: 6940,
      name: "causeway",
      nativeCurrency: { name: "TOKEN", symbol: "TOKEN", decimals: 18 },
      rpcUrls: { default: { http: [rpc] } },
    });
    const account = privateKeyToAccount(kit.key("faucet.key") as Hex);
    // By itself it gives an answer ten seconds.
    const patient = http(undefined, { timeout: PATIENCE_MS });
    const wallet = createWalletClient({ account, chain, transport: patient });
    const reader = createPublicClient({ chain, transport: patient, pollingInterval: 100 });
    const deploy = async (bytecode: Hex, gas?: bigint) => {
      const fields = { abi: [], bytecode, ...(gas === undefined ? {} : { gas }) };
      const hash = await wallet.deployContract(fields);
      return reader.waitForTransactionReceipt({ hash });
    };
    const largest = await deploy(contractOfSize(MAX_CODE_BYTES));
    expect(largest.status).toBe("success");
    const code = await reader.getCode({ address: largest.contractAddress ?? "0x" });
    expect(code).toBe(`0x${"00".repeat(MAX_CODE_BYTES)}`);
    const tooLarge = await deploy(contractOfSize(MAX_CODE_BYTES + 1), 10_000_000n);
    expect(tooLarge.status).toBe("reverted");
    expect(tooLarge.gasUsed).toBe(10_000_000n);
    const longest = await deploy(contractOfSize(1, MAX_INITCODE_BYTES));
    expect(longest.status).toBe("success");
    await expect(deploy(contractOfSize(1, MAX_INITCODE_BYTES + 1), 10_000_000n)).rejects.toThrow(
      /max initcode size exceeded/,
    );
  });
});
