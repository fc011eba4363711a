/** The programs of docs/precompiles.md, as they stand, in a project that was made as the page says. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { hexlify, Interface, Transaction, Wallet } from "ethers";
import { guideFiles, outputOf, temporaryFolders } from "../../helpers/processes/guide.js";
import { createTestNode } from "../../unit/rpc/evm/fixture.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";

const files = guideFiles("../precompiles.md");
const VALIDATOR = "addrvaloper1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqj8kgk0";
const folders = temporaryFolders();
const folder = folders.make("contracts-page");
afterAll(() => folders.removeAll());

beforeAll(async () => {
  writeFileSync(join(folder, "package.json"), '{"name":"page","version":"1.0.0"}');
  const page = readFileSync(join("docs", "precompiles.md"), "utf8");
  expect(page).toContain("npm install ethers /path/of/the/clone\n");
  // The page's command but for ethers, which would come from the registry.
  const install = ["npm", "install", "--offline", "--no-audit", "--no-fund", process.cwd()];
  await outputOf(install, folder, {});
  symlinkSync(join(process.cwd(), "node_modules", "ethers"), join(folder, "node_modules/ethers"));
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
});

describe("the page of the chain's contracts", () => {
  it("has a program that delegates", async () => {
    const node = createTestNode();
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        response.setHeader("content-type", "application/json");
        void node.text(Buffer.concat(chunks).toString()).then((text) => response.end(text));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const wallet = new Wallet(`0x${"11".repeat(32)}`);
    try {
      const printed = await outputOf([process.execPath, "stake.mjs", VALIDATOR], folder, {
        NODE_URL: `http://127.0.0.1:${port}`,
        PRIVATE_KEY: wallet.privateKey,
      });
      const [raw = new Uint8Array(0)] = node.pool.submitted.flat();
      const sent = Transaction.from(hexlify(raw));
      expect(printed.trim()).toBe(sent.hash);
      expect(sent.to).toBe("0x0000000000000000000000000000000000000800");
      const staking = new Interface(["function delegate(address, string, uint256)"]);
      expect(staking.decodeFunctionData("delegate", sent.data).toArray()).toEqual([
        wallet.address,
        VALIDATOR,
        10n ** 18n,
      ]);
    } finally {
      server.close();
    }
  });

  it("has a contract that compiles with what the link leads to", () => {
    const linked = ["IStaking.sol", "Types.sol"].map((name) => {
      const file = `causeway/contracts/interfaces/${name}`;
      return [file, readFileSync(join(folder, "node_modules", file), "utf8")] as const;
    });
    const source = files.get("Staker.sol") ?? "";
    const { Staker } = compileSolidity({ "Staker.sol": source, ...Object.fromEntries(linked) });
    expect(Staker?.bytecode.length).toBeGreaterThan(100);
  });
});
