/** What is kept of an input that has more in it than the contract is made of, and of large ABIs: nothing. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { contractRoutes } from "../../../../explorer/pages/contracts/contract.js";
import type { ChainSource } from "../../../../explorer/sources/chain-source.js";
import { VerifiedStore } from "../../../../explorer/verification/verified-store.js";
import { Verifier } from "../../../../explorer/verification/verifier.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const VERSION = "0.8.1+commit.00000001";
const TAIL = `a2646970667358221220${"11".repeat(32)}64736f6c63430008010033`;
const ADDRESS = parseAddress(`0x${"c0".repeat(20)}`);
const MIB = 1024 * 1024;
const log = createLogger({ component: "explorer", level: "error" });

/** As compilers are that name things after all that they were given: a contract "Counted" counts it. */
const COMPILER = `
const compile = (text) => {
  const { sources } = JSON.parse(text);
  const contracts = {};
  for (const name of ["Plain", "Counted", "Wide"]) {
    const file = name + ".sol";
    if (!(file in sources)) continue;
    const count = name === "Counted" ? Object.keys(sources).length : 1;
    const object = "60" + count.toString(16).padStart(2, "0") + "${TAIL}";
    const metadata = JSON.stringify({ sources: { [file]: {} } });
    const evm = { bytecode: { object }, deployedBytecode: { object } };
    const abi = name === "Wide" ? [{ type: "error", name: "E".repeat(${MIB}) }] : [];
    contracts[file] = { [name]: { abi, metadata, evm } };
  }
  return JSON.stringify({ contracts });
};
module.exports = {
  _solidity_compile: 1,
  _solidity_version: 1,
  cwrap: (name) => (name === "solidity_compile" ? compile : () => "${VERSION}.Emscripten.clang"),
};`;

let folder: string;
let storeFolder: string;
let store: VerifiedStore;
const stopping = new AbortController();

beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "sent-along-"));
  fs.writeFileSync(path.join(folder, `soljson-v${VERSION}.js`), COMPILER);
});

beforeEach(() => {
  storeFolder = fs.mkdtempSync(path.join(folder, "store-"));
  store = VerifiedStore.open({ folder: storeFolder, maxBytes: 32 * MIB, log });
});

afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Sends an input for a contract whose code counts so many sources; what became of it. */
async function verify(
  name: "Plain" | "Counted" | "Wide",
  count: number,
  others: Record<string, string>,
) {
  const byte = count.toString(16).padStart(2, "0");
  const chain = {
    head: () => Promise.resolve({ height: 0 }),
    evm: { getCode: () => Promise.resolve(`0x60${byte}${TAIL}`) },
  } as unknown as ChainSource;
  const verifier = new Verifier({
    chain,
    store,
    compilers: folder,
    limits: { timeoutMs: 60_000, memoryBytes: 64 * MIB },
    limitsLoopback: false,
    clock: systemClock,
    log,
    signal: stopping.signal,
  });
  const sources = Object.fromEntries(
    Object.entries({ ...others, [`${name}.sol`]: `contract ${name} {}` }).map(([file, content]) => [
      file,
      { content },
    ]),
  );
  const sent = {
    address: ADDRESS,
    input: JSON.stringify({ language: "Solidity", sources }),
    contractName: name,
    compilerVersion: VERSION,
    constructorArguments: "",
  };
  const { id } = verifier.submit(sent, undefined);
  await verifier.stop();
  const outcome = verifier.job(id)?.outcome;
  const kept = Object.keys((await store.get(ADDRESS))?.input.sources ?? {}).toSorted();
  return { chain, told: outcome?.kind === "refused" ? outcome.code : outcome?.kind, kept };
}

describe("what is sent along", () => {
  it("is not kept where the contract is the same without it, however much it is", async () => {
    const praise = { "Audited.sol": "// audited, all is well\n".repeat(100_000) };
    expect(await verify("Plain", 1, praise)).toMatchObject({
      told: "verified",
      kept: ["Plain.sol"],
    });
  });

  it("is kept where the contract is another one without it, within a bound", async () => {
    const large = { "Other.sol": "x".repeat(300 * 1024) };
    expect(await verify("Counted", 2, large)).toMatchObject({
      told: "TOO_MUCH_SENT_ALONG",
      kept: [],
    });
    const small = { "Other.sol": "contract Other {}" };
    expect(await verify("Counted", 2, small)).toMatchObject({
      told: "verified",
      kept: ["Counted.sol", "Other.sol"],
    });
  });

  it("is shown apart from what the contract is made of", async () => {
    const { chain } = await verify("Counted", 2, { "Other.sol": "// all is well" });
    const [route] = contractRoutes({ chain, contracts: { store } } as unknown as PageContext);
    const { content } = await openPage(route, { parameter: ADDRESS });
    const [own, others] = shownContent(content).text.split("Sent along");
    expect(own).toContain("contract Counted {}");
    expect(own).not.toContain("all is well");
    expect(others).toMatch(/not made of.*Other\.sol.*all is well/s);
  });

  it("gives way to less of it, and to nothing else", async () => {
    await verify("Counted", 2, { "Slander.sol": "// this contract is a fraud" });
    const needed = { "Other.sol": "contract Other {}" };
    expect(await verify("Counted", 2, needed)).toMatchObject({
      told: "verified",
      kept: ["Counted.sol", "Other.sol"],
    });
    const late = { "Slander.sol": "// this contract is a fraud" };
    expect(await verify("Counted", 2, late)).toMatchObject({
      told: "ALREADY_VERIFIED",
      kept: ["Counted.sol", "Other.sol"],
    });
  });
});

describe("an ABI", () => {
  it("is refused where every page would take long to read it", async () => {
    expect(await verify("Wide", 1, {})).toMatchObject({ told: "ABI_TOO_LARGE", kept: [] });
  });

  it("of that size in a file of before is not read", async () => {
    await verify("Plain", 1, {});
    const [name = ""] = fs.readdirSync(storeFolder);
    const file = path.join(storeFolder, name);
    const kept = JSON.parse(fs.readFileSync(file, "utf8")) as object;
    fs.writeFileSync(file, JSON.stringify({ ...kept, abi: ["x".repeat(MIB)] }));
    const again = VerifiedStore.open({ folder: storeFolder, maxBytes: 32 * MIB, log });
    expect(await again.get(ADDRESS)).toBeUndefined();
    expect(await again.face(ADDRESS)).toBeUndefined();
  });
});
