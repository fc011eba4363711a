/** Verification's parts: codes compared, compilers bounded, inputs of strangers, files that are whole or absent. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { hexToBytes, parseHash32, parseHex } from "../../../../chain/hex.js";
import { matchCode, readTail } from "../../../../explorer/verification/code-match.js";
import {
  compileIn,
  type CompiledContract,
  type Compiler,
  findCompiler,
  listCompilers,
} from "../../../../explorer/verification/compilers.js";
import {
  compilerInput,
  hasTail,
  parseStandardInput,
  parseTarget,
} from "../../../../explorer/verification/standard-input.js";
import {
  type VerifiedContract,
  VerifiedStore,
} from "../../../../explorer/verification/verified-store.js";
import { createLogger } from "../../../../runtime/process/logger.js";

const OZ = path.join(process.cwd(), "node_modules", "@openzeppelin");
const LIMITS = {
  timeoutMs: 600_000,
  memoryBytes: 512 * 1024 * 1024,
  signal: new AbortController().signal,
};
const own = "ab".repeat(20);
const WRITTEN = { hasTail: true };
let folder: string;
let compiler: Compiler;

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "verification-"));
  const [first] = await listCompilers("");
  if (first === undefined) throw new Error("solc is not installed");
  compiler = first;
});

afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** A source of OpenZeppelin's package with all that it imports. */
function sourcesOf(entry: string): Record<string, { content: string }> {
  const sources: Record<string, { content: string }> = {};
  const pending = [entry];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (next in sources) continue;
    const content = fs.readFileSync(path.join(OZ, next), "utf8");
    sources[next] = { content };
    for (const [, to = ""] of content.matchAll(/import\s+(?:[^"';]*from\s+)?["']([^"']+)["']/g)) {
      pending.push(path.posix.join(path.posix.dirname(next), to));
    }
  }
  return sources;
}

async function compileText(
  sources: Record<string, { content: string }>,
  name: string,
  settings: Record<string, unknown>,
  limits = LIMITS,
) {
  const text = JSON.stringify({ language: "Solidity", sources, settings });
  const target = parseTarget(name);
  return compileIn(compiler, compilerInput(parseStandardInput(text), target), target, limits);
}

describe("codes", () => {
  it("of OpenZeppelin's published artifact match its published sources, but for the compiler's name", async () => {
    const artifact = JSON.parse(
      fs.readFileSync(path.join(OZ, "contracts/build/contracts/VestingWallet.json"), "utf8"),
    ) as { sourceName: string; deployedBytecode: string };
    const { found, errors } = await compileText(
      sourcesOf(artifact.sourceName),
      `${artifact.sourceName}:VestingWallet`,
      { evmVersion: "cancun", optimizer: { enabled: true, runs: 200 } },
    );
    expect(errors).toEqual([]);
    const [compiled] = found as [CompiledContract];
    // Published with 0.8.35, compiled with what is installed: all but the metadata is the same.
    const match = matchCode(
      hexToBytes(parseHex(artifact.deployedBytecode)),
      compiled,
      own,
      WRITTEN,
    );
    expect(match.kind).toBe("partial");
    expect(match.immutables.length).toBeGreaterThan(0);
    expect(match.chainHash).not.toBe(match.compiledHash);
    // One byte of the code is another contract.
    const changed = hexToBytes(parseHex(artifact.deployedBytecode));
    changed[40] = (changed[40] ?? 0) ^ 1;
    expect(() => matchCode(changed, compiled, own, WRITTEN)).toThrow(/first difference at byte 40/);
  });

  it("are compared with immutables and libraries masked, each at all of its places alike", () => {
    const runtimeCode = `600160${"0".repeat(64)}61${"0".repeat(64)}73__$${"a".repeat(34)}$__00`;
    const compiled = {
      runtimeCode,
      immutables: {
        7: [
          { start: 3, length: 32 },
          { start: 36, length: 32 },
        ],
      },
      links: { "A.sol": { L: [{ start: 69, length: 20 }] } },
    };
    const value = "cd".repeat(32);
    const chain = (first: string, second: string) =>
      Buffer.from(`600160${first}61${second}73${"ee".repeat(20)}00`, "hex");
    expect(matchCode(chain(value, value), compiled, own, WRITTEN)).toMatchObject({
      kind: "partial",
      immutables: [{ name: "7", value: `0x${value}` }],
      libraries: [{ name: "A.sol:L", value: `0x${"ee".repeat(20)}` }],
    });
    expect(() => matchCode(chain(value, "ce".repeat(32)), compiled, own, WRITTEN)).toThrow(
      /differs from place/,
    );
    expect(() => matchCode(Buffer.from("6001", "hex"), compiled, own, WRITTEN)).toThrow(
      /too short/,
    );
    const library = { runtimeCode: `73${"0".repeat(40)}301400`, immutables: {}, links: {} };
    const deployed = Buffer.from(`73${own}301400`, "hex");
    expect(matchCode(deployed, library, own, WRITTEN).kind).toBe("partial");
    expect(() => matchCode(deployed, library, "cd".repeat(20), WRITTEN)).toThrow(
      /first difference/,
    );
  });

  it("of which none is metadata are compared to the last byte, whatever their end looks like", async () => {
    const end = (hash: string) => `a2646970667358221220${hash}64736f6c63430008250033`;
    const [said, meant] = ["11".repeat(32), "22".repeat(32)];
    // The program's own constant, of which it uses what stands where a hash of metadata would.
    const content = `contract Vault {
      function seal() external pure returns (bytes memory) { return hex"${end(said)}"; }
    }`;
    const settings = { metadata: { appendCBOR: false } };
    const input = parseStandardInput(
      JSON.stringify({ language: "Solidity", sources: { "Vault.sol": { content } }, settings }),
    );
    const { found, errors } = await compileText({ "Vault.sol": { content } }, "Vault", settings);
    expect(errors).toEqual([]);
    const [compiled] = found as [CompiledContract];
    const honest = compiled.runtimeCode;
    expect(honest.endsWith(end(said))).toBe(true);
    const match = (code: string) =>
      matchCode(hexToBytes(parseHex(`0x${code}`)), compiled, own, { hasTail: hasTail(input) });
    // Nothing in the code is made of comments and names.
    expect(match(honest)).toMatchObject({
      kind: "partial",
      chainHash: undefined,
      compiledHash: undefined,
    });
    const other = honest.replace(end(said), end(meant));
    expect(() => match(other)).toThrow(/first difference/);
  });

  it("end in metadata only where compilers could have written it", () => {
    const hash = `1220${"12".repeat(32)}`;
    const tail = `a2646970667358 22${hash}64736f6c63430008250033`.replaceAll(" ", "");
    expect(readTail(`00${tail}`)).toEqual({ hash: `0x${hash}`, lengthBytes: 53 });
    expect(readTail("00a164736f6c6343000825000a")).toEqual({ hash: undefined, lengthBytes: 12 });
    // A key of somebody's own, a length that lies, nothing.
    const code41 = `a26469706673 5829${"5b".repeat(41)}64736f6c634300082500`.replaceAll(" ", "");
    for (const code of [
      "a1646576696c43000825000a",
      // A "hash" with room for code in it.
      `${code41}${(code41.length / 2).toString(16).padStart(4, "0")}`,
      `${tail.slice(0, -4)}ffff`,
      "",
      "00",
      "0000",
    ]) {
      expect({ code, tail: readTail(code) }).toEqual({ code, tail: undefined });
    }
  });
});

describe("compilers", () => {
  it("are found by version and commit, those of a folder too", async () => {
    for (const name of [
      "soljson-v0.8.9+commit.e5eed63a.js",
      "soljson-v0.8.24+commit.e11b9ed9.js",
      "evil.js",
    ]) {
      fs.writeFileSync(path.join(folder, name), "");
    }
    const all = await listCompilers(folder);
    expect(all.map(({ version }) => version)).toEqual([
      compiler.version,
      "0.8.24+commit.e11b9ed9",
      "0.8.9+commit.e5eed63a",
    ]);
    expect(findCompiler(all, "v0.8.9+commit.e5eed63a")?.file).toContain("0.8.9");
    expect(findCompiler(all, "0.8.24")?.file).toContain("0.8.24");
    expect(findCompiler(all, "v0.8.9+commit.00000000")).toBeUndefined();
    expect(findCompiler(all, "../../etc/passwd")).toBeUndefined();
    expect(await listCompilers(path.join(folder, "missing"))).toEqual([compiler]);
  });

  it("end at their bounds of time and memory, and with the process", async () => {
    const source = (body: string) => ({ "A.sol": { content: `contract A { ${body} }` } });
    await expect(
      compileText(source(""), "A", {}, { ...LIMITS, timeoutMs: 1 }),
    ).rejects.toMatchObject({
      code: "TOO_LONG",
    });
    const many = Array.from(
      { length: 1_000 },
      (_, index) =>
        `function f${index}(uint a, uint b) public pure returns (uint) { return a * b + ${index}; }`,
    ).join("\n");
    await expect(
      compileText(source(many), "A", {}, { ...LIMITS, memoryBytes: 20 * 1024 * 1024 }),
    ).rejects.toMatchObject({ code: "TOO_MUCH_MEMORY" });
    const stopping = new AbortController();
    const running = compileText(source(many), "A", {}, { ...LIMITS, signal: stopping.signal });
    stopping.abort(new Error("stopped"));
    await expect(running).rejects.toThrow("stopped");
    // A compiler that never ends, in a loop of WebAssembly: only its thread's end ends it.
    const endless = path.join(folder, "endless.js");
    const loop = "0061736d01000000010401600000030201000707010372756e00000a09010700034 00c000b0b";
    fs.writeFileSync(
      endless,
      `const code = Buffer.from("${loop.replaceAll(" ", "")}", "hex");
       const { run } = new WebAssembly.Instance(new WebAssembly.Module(code)).exports;
       module.exports = { _solidity_compile: run, cwrap: () => run };`,
    );
    const never = { version: "0.8.1", file: endless };
    await expect(
      compileIn(never, "{}", parseTarget("A"), { ...LIMITS, timeoutMs: 2_000 }),
    ).rejects.toMatchObject({ code: "TOO_LONG" });
    const hoarding = path.join(folder, "hoarding.js");
    fs.writeFileSync(
      hoarding,
      "const all = []; for (;;) all.push(new Array(1e6).fill(all.length));",
    );
    await expect(
      compileIn({ version: "0.8.1", file: hoarding }, "{}", parseTarget("A"), LIMITS),
    ).rejects.toMatchObject({ code: "TOO_MUCH_MEMORY" });
    const broken = path.join(folder, "broken.js");
    fs.writeFileSync(broken, "throw new Error('no compiler')");
    const target = parseTarget("A");
    await expect(
      compileIn({ version: "0.8.1", file: broken }, "{}", target, LIMITS),
    ).rejects.toMatchObject({ code: "COMPILER_FAILED" });
  });

  it("read nothing but what was sent", async () => {
    const content = 'import "/etc/passwd"; contract A {}';
    const { errors, found } = await compileText({ "A.sol": { content } }, "A", {});
    expect(errors.join("\n")).toContain("not found");
    expect(found.filter(({ runtimeCode }) => runtimeCode !== "")).toEqual([]);
  });
});

describe("inputs", () => {
  it("are Solidity with content, and nothing else of them is passed on", () => {
    const base = { language: "Solidity", sources: { "A.sol": { content: "contract A {}" } } };
    const settings = {
      viaIR: true,
      modelChecker: { engine: "all" },
      outputSelection: {},
      stopAfter: "parsing",
    };
    const text = JSON.stringify({ ...base, settings });
    expect(parseStandardInput(text).settings).toEqual({ viaIR: true });
    expect(parseStandardInput(`{${text}}`).sources).toEqual(base.sources);
    for (const wrong of [
      "",
      "[]",
      "null",
      "{",
      JSON.stringify({ ...base, language: "Yul" }),
      JSON.stringify({ ...base, sources: {} }),
      JSON.stringify({ ...base, sources: { a: { urls: ["file:///etc/passwd"] } } }),
      JSON.stringify({ ...base, settings: [] }),
      "[".repeat(100_000),
    ]) {
      expect(() => parseStandardInput(wrong)).toThrow(
        expect.objectContaining({ code: "BAD_INPUT" }),
      );
    }
    for (const name of ["", "A B", "a.sol:", "<script>", "x".repeat(2_000)]) {
      expect(() => parseTarget(name)).toThrow(expect.objectContaining({ code: "BAD_INPUT" }));
    }
    expect(parseTarget("a/b.sol:C")).toEqual({ source: "a/b.sol", name: "C" });
  });
});

describe("the store", () => {
  const log = createLogger({ component: "explorer", level: "error" });
  const contract = (digit: string, kind: "exact" | "partial"): VerifiedContract => ({
    address: parseAddress(`0x${digit.repeat(40)}`),
    codeHash: parseHash32(`0x${"11".repeat(32)}`),
    match: { kind, immutables: [], libraries: [], chainHash: undefined, compiledHash: undefined },
    compiler: "0.8.37",
    source: "A.sol",
    name: "A",
    abi: [],
    input: { sources: { "A.sol": { content: "contract A {}" } }, settings: {} },
    creation: undefined,
    verifiedAtSeconds: 1,
  });

  it("keeps what was put, lets only exact replace partial, and ends at its bound", async () => {
    const at = path.join(folder, "store");
    const store = VerifiedStore.open({ folder: at, maxBytes: 1_000, log });
    await store.put(contract("a", "partial"));
    await expect(store.put(contract("a", "partial"))).rejects.toMatchObject({
      code: "ALREADY_VERIFIED",
    });
    await store.put(contract("a", "exact"));
    await expect(store.put(contract("a", "partial"))).rejects.toMatchObject({
      code: "ALREADY_VERIFIED",
    });
    await store.put(contract("b", "exact"));
    await expect(store.put(contract("c", "exact"))).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(store.generation).toBe(3);
    // Of a former build: what it is made of is not known yet.
    await store.put({ ...contract("a", "exact"), parts: ["A.sol"] });
    await expect(store.put({ ...contract("a", "exact"), parts: ["A.sol"] })).rejects.toMatchObject({
      code: "ALREADY_VERIFIED",
    });
    const again = VerifiedStore.open({ folder: at, maxBytes: 1_000, log });
    expect(await again.get(contract("a", "exact").address)).toMatchObject({
      match: { kind: "exact" },
      name: "A",
    });
    await expect(again.put(contract("c", "exact"))).rejects.toMatchObject({ code: "STORE_FULL" });
  });

  it("opens after a crash: what was half written is gone, what is damaged is not shown", async () => {
    const at = path.join(folder, "crashed");
    const store = VerifiedStore.open({ folder: at, maxBytes: 10_000, log });
    await store.put(contract("a", "exact"));
    await store.put(contract("b", "exact"));
    const [first = "", second = ""] = fs.readdirSync(at).toSorted();
    fs.writeFileSync(path.join(at, `.${first}.0.tmp`), "half");
    fs.writeFileSync(path.join(at, second), '{"form":1,"addr');
    const again = VerifiedStore.open({ folder: at, maxBytes: 10_000, log });
    expect(fs.readdirSync(at).toSorted()).toEqual([first, second]);
    expect((await again.get(contract("a", "exact").address))?.name).toBe("A");
    expect(await again.get(contract("b", "exact").address)).toBeUndefined();
    await again.put(contract("b", "exact"));
    expect((await again.get(contract("b", "exact").address))?.name).toBe("A");
  });
});
